"""The decisions of scheduler and sender, without a loop."""

from __future__ import annotations

import asyncio

import pytest

from aiokwire.errors import BufferFullError
from aiokwire.producer import planning
from aiokwire.producer._accumulator import NOWAIT, Accumulator
from aiokwire.producer._delivery import Batch, WaitingRecord
from aiokwire.producer._partition import Partition, Topic


class Silent:
    """Events without a listener."""

    def on_open(self, partition: Partition) -> None: ...

    def on_sealed(self, partition: Partition) -> None: ...

    def on_urgent(self, partition: Partition) -> None: ...

    def on_unknown(self, topic: Topic) -> None: ...
    def on_refused(self, batch: Batch) -> None: ...
    def on_cancel(self, batch: Batch, index: int) -> bool:
        return False

    def choose_sticky(self, topic: Topic) -> int:
        return 0

    def choose_partition(self, topic: Topic, key: bytes | None, value: bytes | None) -> int:
        raise NotImplementedError

    def enter_line(self, record: object) -> WaitingRecord:
        raise NotImplementedError

    def full(self, record: object) -> BufferFullError:
        raise NotImplementedError


async def partitions(count: int, batches: int, *, size: int = 10) -> list[Partition]:
    """Partitions with sealed batches of one record each."""
    accumulator = Accumulator(
        Silent(),
        limit=1 << 30,
        batch_size=1 << 20,
        max_record=1 << 20,
        delivery_timeout=60.0,
    )
    accumulator.open(asyncio.get_running_loop())
    topic = accumulator.add_topic("t")
    accumulator.set_partitions(topic, [1] * count, [2] * count)
    for partition in topic.partitions:
        for _ in range(batches):
            accumulator.append("t", b"x" * size, None, partition.index, None, None, NOWAIT)
            accumulator.seal(partition)
    return topic.partitions


def send(partition: Partition) -> Batch:
    return partition.take_next()


def fits(partition: Partition, *, now: float = 0.0, idempotent: bool = True, limit: int = 5) -> bool:
    return planning.may_leave(partition, now, idempotent=idempotent, max_in_flight=limit)


async def test_without_idempotence_a_partition_is_muted_while_a_batch_is_unresolved() -> None:
    (partition,) = await partitions(1, 2)
    assert fits(partition, idempotent=False)
    batch = send(partition)
    assert not fits(partition, idempotent=False)
    assert partition.arrived(batch)
    assert fits(partition, idempotent=False)


async def test_with_idempotence_a_partition_has_up_to_five_batches_on_their_way() -> None:
    (partition,) = await partitions(1, 7)
    for _ in range(5):
        assert fits(partition)
        send(partition)
    assert not fits(partition)


async def test_a_batch_that_could_only_queue_up_gathers_records_instead() -> None:
    (partition,) = await partitions(1, 1)
    assert not planning.leaves_at_once(partition, free=True, idempotent=True), (
        "another batch of its partition is before it"
    )
    send(partition)
    assert planning.leaves_at_once(partition, free=True, idempotent=True)
    assert not planning.leaves_at_once(partition, free=False, idempotent=True), "its broker takes no request now"
    assert not planning.leaves_at_once(partition, free=True, idempotent=False), "it is muted"


async def test_a_retry_waits_for_the_batches_behind_it() -> None:
    (partition,) = await partitions(1, 3)
    first, second = send(partition), send(partition)
    assert partition.arrived(first)
    partition.put_back(first)
    assert partition.queue[0] is first
    assert not fits(partition)
    assert planning.earlier_is_unresolved(partition, second)
    assert partition.arrived(second)
    assert fits(partition)


async def test_batches_that_are_put_back_in_any_order_keep_their_own() -> None:
    (partition,) = await partitions(1, 4)
    sent = [send(partition) for _ in range(3)]
    last = partition.queue[0]
    for batch in (sent[1], sent[0], sent[2]):
        assert partition.arrived(batch)
        partition.put_back(batch)
    assert list(partition.queue) == [*sent, last]


async def test_nothing_leaves_during_the_pause_after_a_failure() -> None:
    (partition,) = await partitions(1, 1)
    partition.hold(5.0)
    assert not fits(partition, now=4.9)
    assert fits(partition, now=5.0)


async def test_a_new_epoch_waits_for_everything_in_flight() -> None:
    (partition,) = await partitions(1, 2)
    batch = send(partition)
    partition.break_sequence()
    assert not fits(partition)
    assert partition.arrived(batch)
    assert fits(partition)


async def test_a_request_takes_one_batch_of_each_partition() -> None:
    found = await partitions(3, 2)
    planned = planning.plan_request(found, 0.0, idempotent=True, max_in_flight=5, max_bytes=1 << 20, most=250)
    assert planned == found


async def test_a_request_is_capped_by_bytes_but_never_empty() -> None:
    found = await partitions(3, 1, size=1000)
    planned = planning.plan_request(found, 0.0, idempotent=True, max_in_flight=5, max_bytes=10, most=250)
    assert planned == found[:1]
    planned = planning.plan_request(found, 0.0, idempotent=True, max_in_flight=5, max_bytes=2500, most=250)
    assert planned == found[:2]


@pytest.mark.parametrize(
    ("requests", "batches", "idempotent", "goes"),
    [(0, 0, True, True), (1, 0, True, True), (2, 0, True, False), (1, 1, True, True), (1, 1, False, False)],
)
async def test_an_awaited_record_is_sent_at_once_when_its_broker_has_few_requests(
    requests: int, batches: int, idempotent: bool, goes: bool
) -> None:
    (partition,) = await partitions(1, batches)
    for _ in range(batches):
        send(partition)
    assert planning.goes_at_once(partition, requests_in_flight=requests, idempotent=idempotent) is goes


async def test_nothing_follows_the_first_batch_of_a_sequence_before_its_response() -> None:
    (partition,) = await partitions(1, 2)
    first = send(partition)
    first.number(1, 0, 0)
    assert not fits(partition)
    assert not planning.goes_at_once(partition, requests_in_flight=1, idempotent=True)
    second = partition.queue[0]
    partition.discard(second)
    assert not planning.leaves_at_once(partition, free=True, idempotent=True)
    partition.push(second)
    first.number(1, 0, 1)
    assert fits(partition)


async def test_nothing_follows_a_retry_before_its_response() -> None:
    """A broker with a recreated topic may reject it, and accept the next batch as the first one."""
    partition, other = await partitions(2, 2)
    retry = send(partition)
    assert partition.arrived(retry)
    partition.put_back(retry)
    assert send(partition) is retry
    retry.number(1, 0, 7)
    assert not fits(partition)
    assert not planning.goes_at_once(partition, requests_in_flight=1, idempotent=True)
    send(other).number(1, 0, 7)
    assert fits(other)


def test_a_batch_lingers_for_its_time() -> None:
    assert not planning.lingered(1.0, 1.004, 0.005)
    assert planning.lingered(1.0, 1.0 + 0.005, 0.005)
    assert planning.lingered(1.0, 1.0, 0.0)


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 2), (13, 2)])
def test_the_version_of_produce_decides_the_message_format(version: int, magic: int) -> None:
    assert planning.format_of(version) == magic
