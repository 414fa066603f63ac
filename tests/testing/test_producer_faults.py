"""The producer and faults on demand: each acknowledged record is there once, and in order.

Numbers in names are those of scenarios that broke other clients: a lost response, a wrapped
sequence, a full buffer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.errors import BrokerError, ClosedError, DeliveryFailed, RecordRejected
from aiokwire.producer._delivery import Batch
from aiokwire.producer._partition import Partition
from aiokwire.producer.idempotence import Idempotence
from aiokwire.protocol.messages import api_versions, init_producer_id, metadata
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.types import Compression
from tests.testing.clients import Quick, batches_sent, numbers, values, writer

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
COUNT = 300


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    """Three nodes: partition 0 of topic t begins at node 1, 1 at node 2, 2 at node 3."""
    return {"nodes": 3, "topics": {"t": 3, "one": 1}, "auto_create_topics": False}


async def send_with(broker: Broker, quick: Quick, between: Callable[[int], Awaitable[None]], **more: Any) -> None:
    """Send many records to one partition, each step of ten preceded by what the test does."""
    async with writer(broker, quick, **more) as producer:
        for start in range(0, COUNT, 10):
            await between(start // 10)
            sent = [producer.submit_nowait("one", value) for value in numbers(COUNT)[start : start + 10]]
            for delivery in sent[-1:]:
                await delivery


# --- leaders ----------------------------------------------------------------------------------------------------------


async def test_a_leader_that_moves_all_the_time_costs_nothing_but_time(kafka_broker: Broker, quick: Quick) -> None:
    async def move(step: int) -> None:
        kafka_broker.faults.move_leader("one", 0, kafka_broker.nodes[step % 3])

    await send_with(kafka_broker, quick, move)
    assert values(kafka_broker) == numbers(COUNT)


async def test_a_hint_about_the_leader_is_followed_without_asking_for_metadata(
    kafka_broker: Broker, quick: Quick
) -> None:
    async with writer(kafka_broker, quick, retry_backoff_ms=30_000, retry_backoff_max_ms=30_000) as producer:
        await producer.send("one", b"a")
        await producer.send("t", b"warm", partition=1)
        kafka_broker.faults.move_leader("one", 0, 2)
        started = anyio.current_time()
        await producer.send("one", b"b")
        assert anyio.current_time() - started < 10
    assert values(kafka_broker) == [b"a", b"b"]


async def test_stale_metadata_costs_only_time(kafka_broker: Broker, quick: Quick) -> None:
    async with writer(kafka_broker, quick) as producer:
        await producer.send("one", b"a")
        kafka_broker.faults.freeze_metadata()
        kafka_broker.faults.move_leader("one", 0, 3)
        delivery = producer.submit_nowait("one", b"b")
        await kafka_broker.journal.wait_for(lambda entry: entry.api == ApiKey.PRODUCE and entry.node == 1, count=4)
        assert not delivery.done()
        kafka_broker.faults.thaw_metadata()
        assert (await delivery).offset == 1
    assert values(kafka_broker) == [b"a", b"b"]


async def test_a_node_that_stops_hands_its_partitions_over(kafka_broker: Broker, quick: Quick) -> None:
    async def stop_and_start(step: int) -> None:
        if step % 6 == 2:
            await kafka_broker.faults.stop_node(kafka_broker.faults.leader("one", 0))
        elif step % 6 == 5:
            for node in kafka_broker.nodes:
                await kafka_broker.faults.start_node(node)

    await send_with(kafka_broker, quick, stop_and_start)
    assert values(kafka_broker) == numbers(COUNT)


async def test_a_partition_without_a_leader_waits_for_it(kafka_broker: Broker, quick: Quick) -> None:
    async with writer(kafka_broker, quick) as producer:
        await producer.send("one", b"a")
        await kafka_broker.faults.stop_node(1, fail_over=False)
        waiting = producer.submit_nowait("one", b"b")
        assert (await producer.send("t", b"elsewhere", partition=1)).offset == 0
        assert not waiting.done()
        await kafka_broker.faults.start_node(1)
        assert (await waiting).offset == 1


async def test_an_error_of_one_partition_does_not_touch_the_others(kafka_broker: Broker, quick: Quick) -> None:
    rule = kafka_broker.faults.on(ApiKey.PRODUCE, topic="t", partition=1, times=None).error(
        ErrorCode.NOT_ENOUGH_REPLICAS
    )
    async with writer(kafka_broker, quick) as producer:
        stuck = producer.submit_nowait("t", b"1", partition=1)
        for partition in (0, 2):
            await producer.send("t", b"x", partition=partition)
        assert not stuck.done()
        rule.remove()
        await stuck
    assert [len(values(kafka_broker, "t", partition)) for partition in range(3)] == [1, 1, 1]


# --- answers that are lost (20) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["close_after", "close", "drop", "drop handled", "late", "late answer"])
async def test_20_a_request_whose_response_is_lost_is_written_once(
    kafka_broker: Broker, quick: Quick, fault: str
) -> None:
    found = kafka_broker.faults.on(ApiKey.PRODUCE, nth=3, times=2)
    if fault in ("close", "close_after"):
        getattr(found, fault)()
    elif fault.startswith("drop"):
        found.drop(handled=fault.endswith("handled"))
    else:
        found.delay(0.25, handled=fault == "late answer")
    async with writer(kafka_broker, quick, request_timeout_ms=100) as producer:
        sent = []
        for value in numbers(40):
            sent.append(producer.submit_nowait("one", value))
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(10):
            for delivery in sent:
                await delivery
    assert values(kafka_broker) == numbers(40)


async def test_20_a_retry_is_the_very_same_batch_and_the_next_sequence_follows(
    kafka_broker: Broker, quick: Quick
) -> None:
    kafka_broker.faults.on(ApiKey.PRODUCE).close_after()
    async with writer(kafka_broker, quick) as producer:
        await producer.send("one", b"a")
        await producer.send("one", b"b")
    first, again, following = batches_sent(kafka_broker)
    assert first == again
    assert int.from_bytes(following[53:57], "big") == 1, "the sequence continues where the batch ended"
    assert len(kafka_broker.journal.requests(init_producer_id.InitProducerIdRequest)) == 1
    assert values(kafka_broker) == [b"a", b"b"]


async def test_20_a_duplicate_sequence_is_a_success(kafka_broker: Broker, quick: Quick) -> None:
    kafka_broker.faults.on(ApiKey.PRODUCE).error(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    async with writer(kafka_broker, quick) as producer:
        delivered = await producer.send("one", b"a")
    assert delivered.offset == -1, "the broker did not return the offset"


async def test_a_response_after_the_delivery_deadline_changes_nothing(kafka_broker: Broker, quick: Quick) -> None:
    held = kafka_broker.faults.on(ApiKey.PRODUCE).hold(handled=True)
    async with writer(kafka_broker, quick, request_timeout_ms=5000, delivery_timeout_ms=300) as producer:
        delivery = producer.submit_nowait("one", b"a")
        with pytest.raises(DeliveryFailed, match="in flight"):
            await delivery
        held.release()
        await producer.send("one", b"b")
    assert values(kafka_broker) == [b"a", b"b"]


async def test_an_expired_batch_does_not_poison_its_partition(kafka_broker: Broker, quick: Quick) -> None:
    kafka_broker.faults.on(ApiKey.PRODUCE, times=None).error(ErrorCode.REQUEST_TIMED_OUT)
    async with writer(kafka_broker, quick, request_timeout_ms=200, delivery_timeout_ms=400) as producer:
        with pytest.raises(DeliveryFailed, match="REQUEST_TIMED_OUT"):
            await producer.send("one", b"lost")
        kafka_broker.faults.clear_rules()
        for value in numbers(5):
            await producer.send("one", value)
    assert values(kafka_broker) == numbers(5)


# --- sequences (22) ---------------------------------------------------------------------------------------------------


async def test_22_a_sequence_wraps_to_zero(kafka_broker: Broker, quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    """Producers that counted on had every batch rejected after 2^31 - 1 records.

    This one begins just before.
    """
    stamp = Idempotence.stamp

    def stamp_near_the_end(self: Idempotence, partition: Partition, batch: Batch) -> None:
        if partition.producer_id < 0:
            partition.producer_id, partition.producer_epoch = self.producer_id, self.producer_epoch
            partition.next_sequence = 2**31 - 4
        stamp(self, partition, batch)

    monkeypatch.setattr(Idempotence, "stamp", stamp_near_the_end)
    kafka_broker.faults.on(ApiKey.PRODUCE, nth=2, times=3).close_after()
    async with writer(kafka_broker, quick) as producer:
        for value in numbers(12):
            await producer.send("one", value)
    sequences = [int.from_bytes(data[53:57], "big") for data in batches_sent(kafka_broker)]
    assert sequences[0] == 2**31 - 4
    assert sequences[-1] == 7
    assert values(kafka_broker) == numbers(12)


async def test_a_broken_sequence_restarts_under_the_next_epoch(kafka_broker: Broker, quick: Quick) -> None:
    async with writer(kafka_broker, quick) as producer:
        await producer.send("one", b"a")
        kafka_broker.faults.on(ApiKey.PRODUCE).error(ErrorCode.UNKNOWN_PRODUCER_ID)
        await producer.send("one", b"b")
    *_, last = kafka_broker.records("one")
    assert last.value == b"b"
    epochs = [int.from_bytes(data[51:53], "big") for data in batches_sent(kafka_broker)]
    assert epochs == [0, 0, 1]


# --- a full buffer, flush and close (24, 26) --------------------------------------------------------------------------


async def test_24_tasks_at_a_full_buffer_are_served_in_order_and_batches_stay_full(
    kafka_broker: Broker, quick: Quick
) -> None:
    held = kafka_broker.faults.on(ApiKey.PRODUCE).hold()
    served: list[int] = []
    size = 1000

    async def send(number: int) -> None:
        delivery = await producer.submit("one", b"%06d" % number + b"x" * (size - 6))
        served.append(number)
        await delivery

    options = {"buffer_memory": 64 * size, "batch_size": 16 * size, "max_request_size": 2 * size}
    async with writer(kafka_broker, quick, linger_ms=5, **options) as producer, anyio.create_task_group() as tasks:
        for number in range(1000):
            tasks.start_soon(send, number)
        await held.arrived()
        assert len(served) < 64
        held.release()
    assert served == sorted(served)
    assert [int((value or b"")[:6]) for value in values(kafka_broker)] == list(range(1000))
    assert len(batches_sent(kafka_broker)) < 1000 / 8, "batches are at least half full"


async def test_26_a_flush_does_not_wait_out_the_linger(kafka_broker: Broker, quick: Quick) -> None:
    async with writer(kafka_broker, quick, linger_ms=60_000) as producer:
        delivery = producer.submit_nowait("one", b"a")
        with anyio.fail_after(20):
            await producer.flush()
        assert delivery.done()


async def test_26_a_close_past_its_timeout_reports_the_rest_and_sending_then_fails(
    kafka_broker: Broker, quick: Quick
) -> None:
    held = kafka_broker.faults.on(ApiKey.PRODUCE, times=None).hold()
    producer = writer(kafka_broker, quick)
    await producer.start()
    delivery = producer.submit_nowait("one", b"a", key=b"k")
    await held.arrived()
    left = await producer.close(timeout=0.05)
    assert [(one.topic, one.key, one.value, one.in_flight) for one in left] == [("one", b"k", b"a", True)]
    with pytest.raises((DeliveryFailed, ClosedError)):
        await delivery
    with pytest.raises(ClosedError):
        await producer.send("one", b"b")
    held.release()
    async with writer(kafka_broker, quick) as another:
        await another.send("one", b"c")
        await another.flush(timeout=2)


# --- refused records (28) ---------------------------------------------------------------------------------------------


async def test_28_the_culprit_of_a_batch_is_named_and_the_rest_may_be_sent_again(
    kafka_broker: Broker, quick: Quick
) -> None:
    await kafka_broker.create_topic("compacted", 1, {"cleanup.policy": "compact"})
    async with writer(kafka_broker, quick, linger_ms=20) as producer:
        keys = [b"k", None, b"k"]
        sent = [
            producer.submit_nowait("compacted", b"v%d" % number, key=key, headers=[("h", b"x")])
            for number, key in enumerate(keys)
        ]
        errors = []
        for delivery in sent:
            with pytest.raises(BrokerError) as raised:
                await delivery
            errors.append(raised.value)
        assert isinstance(errors[1], RecordRejected)
        assert [error.retriable for error in errors] == [True, False, True]
        for number in (0, 2):
            await producer.send("compacted", b"v%d" % number, key=b"k", headers=[("h", b"x")])
    held = kafka_broker.records("compacted")
    assert [(record.value, record.headers) for record in held] == [(b"v0", (("h", b"x"),)), (b"v2", (("h", b"x"),))]


async def test_28_headers_are_kept_across_the_borders_of_batches(kafka_broker: Broker, quick: Quick) -> None:
    async with writer(kafka_broker, quick, batch_size=300, compression_type=Compression.NONE) as producer:
        for number in range(50):
            await producer.submit("one", b"x" * 50, headers=[("n", b"%d" % number)])
        await producer.flush()
    assert len(batches_sent(kafka_broker)) > 5
    assert [record.headers for record in kafka_broker.records("one")] == [
        (("n", b"%d" % number),) for number in range(50)
    ]


async def test_a_batch_that_is_too_large_is_split(kafka_broker: Broker, quick: Quick) -> None:
    kafka_broker.faults.on(ApiKey.PRODUCE).error(ErrorCode.MESSAGE_TOO_LARGE)
    async with writer(kafka_broker, quick, linger_ms=20) as producer:
        sent = [producer.submit_nowait("one", value) for value in numbers(10)]
        for delivery in sent:
            await delivery
    assert values(kafka_broker) == numbers(10)
    assert len(batches_sent(kafka_broker)) == 3


# --- before the first record ------------------------------------------------------------------------------------------


async def test_a_start_goes_by_a_node_that_hangs_up(kafka_broker: Broker, quick: Quick) -> None:
    kafka_broker.faults.on(ApiKey.API_VERSIONS, node=1, times=None).close()
    kafka_broker.faults.on(metadata.MetadataRequest).error(ErrorCode.LEADER_NOT_AVAILABLE)
    async with writer(kafka_broker, quick) as producer:
        await producer.send("t", b"a", partition=1)
    assert kafka_broker.journal.requests(api_versions.ApiVersionsRequest, node=2)


async def test_a_producer_id_is_requested_until_there_is_one(kafka_broker: Broker, quick: Quick) -> None:
    kafka_broker.faults.on(ApiKey.INIT_PRODUCER_ID, times=2).error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    kafka_broker.faults.on(ApiKey.INIT_PRODUCER_ID).close()
    async with writer(kafka_broker, quick) as producer:
        assert (await producer.send("one", b"a")).offset == 0
    assert len(kafka_broker.journal.requests(init_producer_id.InitProducerIdRequest)) >= 4


async def test_producing_continues_on_a_recreated_topic(kafka_broker: Broker, quick: Quick) -> None:
    """A new topic id and fewer partitions: sequences start again, nothing hangs."""
    async with writer(kafka_broker, quick) as producer:
        await producer.send("t", b"old", partition=0)
        await kafka_broker.delete_topic("t")
        await kafka_broker.create_topic("t", 1)
        with anyio.fail_after(5):
            await producer.send("t", b"new", partition=0)
            await producer.send("t", b"newer", partition=0)
    assert values(kafka_broker, "t") == [b"new", b"newer"]
