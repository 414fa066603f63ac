"""Records into batches: acceptance, partitions, and the count of bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiokwire.producer._accumulator import NOWAIT, SEND, SUBMIT, Accumulator
from aiokwire.producer._delivery import Batch, outcomes, pending_in
from aiokwire.producer._partition import Partition, Topic
from aiokwire.records import read_batches
from aiokwire.types import Compression
from tests.producer.test_planning import Silent


class Listener(Silent):
    """Records the events."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []
        self.next = 0

    def on_open(self, partition: Partition) -> None:
        self.seen.append(("open", partition.index))

    def on_sealed(self, partition: Partition) -> None:
        self.seen.append(("sealed", partition.index))

    def on_urgent(self, partition: Partition) -> None:
        self.seen.append(("urgent", partition.index))

    def choose_sticky(self, topic: Topic) -> int:
        self.next += 1
        return self.next % topic.count


def made(listener: Silent | None = None, *, count: int = 2, **options: Any) -> tuple[Accumulator, Topic]:
    given: dict[str, Any] = {"limit": 1 << 24, "batch_size": 4000, "max_record": 1 << 20, "delivery_timeout": 60.0}
    accumulator = Accumulator(listener or Listener(), **{**given, **options})
    accumulator.open(asyncio.get_running_loop())
    topic = accumulator.add_topic("t")
    if count:
        accumulator.set_partitions(topic, [1] * count, [2] * count)
    return accumulator, topic


def batches_of(topic: Topic) -> list[Batch]:
    found: list[Batch] = []
    for partition in topic.partitions:
        found += partition.queue
        if partition.open is not None:
            found.append(partition.open)
    return found


async def test_events_come_once_per_batch() -> None:
    listener = Listener()
    accumulator, _ = made(listener, count=1)
    for _ in range(10):
        accumulator.append("t", b"x" * 900, None, 0, None, None, SEND)
    assert listener.seen == [
        ("open", 0), ("urgent", 0), ("sealed", 0),
        ("open", 0), ("urgent", 0), ("sealed", 0),
        ("open", 0), ("urgent", 0),
    ]  # fmt: skip


async def test_a_record_larger_than_a_batch_has_one_of_its_own() -> None:
    accumulator, topic = made(count=1)
    accumulator.append("t", b"a", None, 0, None, None, NOWAIT)
    accumulator.append("t", b"x" * 50_000, None, 0, None, None, NOWAIT)
    accumulator.append("t", b"b", None, 0, None, None, NOWAIT)
    assert [batch.count for batch in batches_of(topic)] == [1, 1, 1]


async def test_submit_is_asked_to_let_the_loop_turn_and_submit_nowait_is_not() -> None:
    accumulator, _ = made(batch_size=1 << 20)
    while accumulator.append("t", b"x" * 10_000, None, None, None, None, SUBMIT) is not None:
        assert accumulator.used < 1 << 20
    assert accumulator.turn_due
    assert accumulator.append("t", b"x", None, None, None, None, NOWAIT) is not None
    await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop, no time
    assert accumulator.append("t", b"x", None, None, None, None, SUBMIT) is not None


async def test_the_limit_is_never_exceeded_and_room_is_freed() -> None:
    accumulator, topic = made(limit=10_000)
    while accumulator.append("t", b"x" * 500, None, None, None, None, NOWAIT) is not None:
        assert accumulator.used <= 10_000
    for partition in topic.partitions:
        accumulator.seal(partition)
    for batch in batches_of(topic):
        batch.complete(0, -1)
        accumulator.finish(batch)
        accumulator.release(batch)
    assert accumulator.used == 0
    assert not accumulator.live


async def test_compressed_bytes_are_all_that_a_batch_holds() -> None:
    accumulator, topic = made(batch_size=1 << 20, count=1)
    while accumulator.used < 500_000:
        accumulator.append("t", b"x" * 500, None, 0, None, None, NOWAIT)
    (batch,) = batches_of(topic)
    accumulator.seal(topic.partitions[0])
    plain = batch.size
    batch.seal(Compression.GZIP, None)
    accumulator.release_plain(batch)
    assert isinstance(batch.data, bytes)
    assert accumulator.used == batch.size == len(batch.data) < plain / 10
    assert len(next(iter(read_batches(batch.data, "t", 0))).records()) == batch.count
    accumulator.release_plain(batch)
    accumulator.finish(batch)
    accumulator.release(batch)
    assert accumulator.used == 0


async def test_an_uncompressed_batch_keeps_its_bytes() -> None:
    accumulator, topic = made(count=1)
    accumulator.append("t", b"x" * 500, None, 0, None, None, NOWAIT)
    (batch,) = batches_of(topic)
    accumulator.seal(topic.partitions[0])
    batch.seal(Compression.NONE, None)
    held = accumulator.used
    accumulator.release_plain(batch)
    assert accumulator.used == batch.size == held
    assert len(next(iter(read_batches(batch.data, "t", 0))).records()) == 1


records = st.lists(
    st.tuples(
        st.one_of(st.none(), st.binary(max_size=300)),
        st.one_of(st.none(), st.binary(max_size=20)),
        st.one_of(st.none(), st.lists(st.tuples(st.text(max_size=5), st.one_of(st.none(), st.binary(max_size=9))))),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(records, st.booleans())
def test_the_count_of_bytes_is_that_of_the_batches(given: list[tuple[Any, Any, Any]], parked: bool) -> None:
    async def check() -> None:
        accumulator, topic = made(count=0 if parked else 2, batch_size=700)
        deliveries = [accumulator.append("t", value, key, None, 5, headers, NOWAIT) for value, key, headers in given]
        if parked:
            bound = sum(accumulator.need(value, key, headers) for value, key, headers in given)
            assert accumulator.used == bound
            accumulator.set_partitions(topic, [1, 1], [2, 2])
            assert accumulator.used <= bound
        batches = batches_of(topic)
        assert accumulator.used == sum(batch.size for batch in batches)
        assert sum(batch.count for batch in batches) == len(given)
        assert set(accumulator.live) == set(batches)
        for partition in topic.partitions:
            accumulator.seal(partition)
        for batch in batches:
            assert len(batch.seal(Compression.NONE, None)) == batch.size
            batch.complete(1000, -1)
            accumulator.finish(batch)
            accumulator.release(batch)
        assert accumulator.used == 0
        assert all(delivery is not None and delivery.result().timestamp == 5 for delivery in deliveries)

    asyncio.run(check())


async def test_a_batch_in_two_halves_keeps_every_delivery_and_the_order() -> None:
    accumulator, topic = made(count=1, batch_size=1 << 20)
    runs: list[Any] = []
    assert accumulator.append_many("t", [b"%d" % number for number in range(9)], 0, runs) == 9
    extra = accumulator.append("t", b"9", None, 0, None, None, NOWAIT)
    assert extra is not None
    (partition,) = topic.partitions
    accumulator.seal(partition)
    whole = partition.take_next()
    rows = [_Row(b"%d" % number) for number in range(10)]
    first, second = accumulator.split(whole, partition, rows)
    assert (first.count, second.count) == (5, 5)
    assert whole.order == first.order < second.order < whole.order + 1
    assert accumulator.used == first.size + second.size
    assert pending_in(*runs[0]) is first
    first.complete(100, -1)
    assert pending_in(*runs[0]) is second
    second.complete(105, -1)
    assert pending_in(*runs[0]) is None
    assert [row[1:3] for row in outcomes(runs)] == [(100, 5), (105, 4)]
    assert extra.result().offset == 109


class _Row:
    """The fields of a record that `split` reads."""

    key = None
    headers = ()
    timestamp = 1

    def __init__(self, value: bytes) -> None:
        self.value = value


async def test_a_parked_record_with_a_partition_that_does_not_exist_fails() -> None:
    accumulator, topic = made(count=0)
    good = accumulator.append("t", b"a", None, 0, None, None, NOWAIT)
    bad = accumulator.append("t", b"b", None, 7, None, None, NOWAIT)
    assert good is not None
    assert bad is not None
    accumulator.set_partitions(topic, [1, 1], [2, 2])
    assert good.partition == 0
    with pytest.raises(ValueError, match="partition 7"):
        bad.result()


async def test_an_error_is_raised_as_a_copy_without_collecting_tracebacks() -> None:
    accumulator, topic = made(count=1)
    delivery = accumulator.append("t", b"a", None, 0, None, None, NOWAIT)
    assert delivery is not None
    (batch,) = batches_of(topic)
    kept = ValueError("kept")
    batch.fail(kept)
    seen = []
    for _ in range(2):
        with pytest.raises(ValueError, match="kept") as caught:
            await delivery
        seen.append(caught.value)
    assert seen[0] is not seen[1]
    assert kept.__traceback__ is None
