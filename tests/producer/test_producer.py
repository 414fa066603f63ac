"""The public API of a producer: records, bulk calls, deadlines, back-pressure, misuse."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    BufferFullError,
    ClosedError,
    ConnectionFailed,
    DeliveryFailed,
    InvalidArgument,
    InvalidRequestError,
    KafkaError,
    RecordRejected,
    RequestTimedOut,
)
from aiokwire.producer import Producer, ProducerRecord, Undelivered
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import produce
from tests.producer.conftest import Script, scripted_cluster

Quick = dict[str, Any]


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 4, "one": 1}, auto_create_topics=False) as broker:
        yield broker


async def outcome(call: Callable[..., Any], **arguments: Any) -> Any:
    """The result of a call, awaited if it is awaitable; a delivery is not awaited."""
    given = call(**arguments)
    return await given if inspect.isawaitable(given) else given


def fill(producer: Producer[bytes, bytes]) -> int:
    """Submit until the buffer is full; return the number of records."""
    for taken in range(1000):
        try:
            producer.submit_nowait("t", b"x" * 900)
        except BufferFullError:
            return taken
    raise AssertionError("the buffer never filled")


async def never_answer(request: produce.ProduceRequest) -> bool | None:
    await anyio.sleep_forever()
    return None


# --- records --------------------------------------------------------------------------------------------------------


async def test_a_sent_record_is_acknowledged_with_its_offset(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        first = await producer.send("one", b"a", timestamp=1_700_000_000_000)
        second = await producer.send("one", b"b", b"k", headers=[("h", b"1"), ("n", None)])
    assert first == ("one", 0, 0, 1_700_000_000_000)
    assert (second.partition, second.offset) == (0, 1)


async def test_deliveries_are_awaited_later_in_any_order(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        deliveries = [await producer.submit("one", b"%d" % number) for number in range(10)]
        assert not deliveries[0].done()
        with pytest.raises(asyncio.InvalidStateError):
            deliveries[0].result()
        offsets = [(await delivery).offset for delivery in reversed(deliveries)]
        assert offsets == list(range(9, -1, -1))
        assert deliveries[3].done()
        assert deliveries[3].result().offset == 3
        assert deliveries[3].exception() is None
        assert (deliveries[3].topic, deliveries[3].partition) == ("one", 0)


async def test_records_for_a_topic_not_seen_before_are_accepted_at_once(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        delivery = producer.submit_nowait("t", b"a", b"key")
        assert delivery.partition == -1
        metadata = await delivery
        assert metadata.partition == delivery.partition == (await producer.send("t", b"b", b"key")).partition


async def test_a_single_send_does_not_wait_out_the_linger(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, linger_ms=60_000) as producer:
        with anyio.fail_after(5):
            await producer.send("t", b"a")
            await producer.send("t", b"b")


async def test_many_concurrent_sends_share_batches(broker: Broker, quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        await producer.send("t", b"first")
        async with anyio.create_task_group() as group:
            for number in range(5000):
                group.start_soon(producer.send, "t", b"%d" % number)
        assert sorted(cluster.values()[1:]) == sorted(b"%d" % number for number in range(5000))  # type: ignore[type-var]  # no null was sent
        assert len(cluster.node.requests) < 50


async def test_serializers_return_the_bytes_and_their_errors_are_named(broker: Broker) -> None:
    def encode(given: Any) -> bytes:
        return json.dumps(given).encode()

    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, value_serializer=encode, key_serializer=str.encode) as producer:
            await producer.send("t", {"a": 1}, "k")
            await (await producer.submit("t", [1]))
            await producer.submit_nowait("t", 2)
            await producer.send_many("t", [3, ProducerRecord(4, "k")])
            with pytest.raises(InvalidArgument, match="value_serializer"):
                await producer.send("t", object())
            await producer.send("t", None)
        assert cluster.values() == [b'{"a": 1}', b"[1]", b"2", b"3", b"4", None]


async def test_a_custom_partitioner_decides_and_is_checked(broker: Broker) -> None:
    def by_length(topic: str, key: bytes | None, value: bytes | None, partitions: Sequence[int]) -> int:
        return len(value or b"")

    async with Producer(broker.bootstrap_servers, partitioner=by_length) as producer:
        await producer.partitions_for("t")
        assert (await producer.send("t", b"xx")).partition == 2
        with pytest.raises(InvalidArgument, match="partitioner returned 9"):
            await producer.send("t", b"x" * 9)
        assert (await producer.send("t", b"x" * 9, partition=1)).partition == 1


async def test_records_without_a_key_are_spread(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.partitions_for("t")
        used = {(await producer.send("t", b"x")).partition for _ in range(8)}
    assert used == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"value": "text"}, "value must be bytes"),
        ({"value": 5}, "value_serializer"),
        ({"key": "text"}, "key must be bytes"),
        ({"topic": b"t"}, "topic must be a str"),
        ({"topic": "a b"}, "not a topic name"),
        ({"topic": ""}, "not a topic name"),
        ({"partition": "0"}, "partition"),
        ({"partition": -1}, "partition"),
        ({"partition": 4}, "it has 4"),
        ({"timestamp": 1.5}, "timestamp"),
        ({"headers": {"a": b"b"}}, "headers"),
        ({"headers": [("a", "b")]}, "headers"),
        ({"headers": [("a", b"b", b"c")]}, "headers"),
        ({"headers": [(b"a", b"b")]}, "headers"),
        ({"headers": [("\ud800", b"b")]}, "headers"),
    ],
)
async def test_a_wrong_argument_is_named_and_nothing_is_lost(
    broker: Broker, arguments: dict[str, Any], named: str
) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.partitions_for("t")
        kept = await producer.submit("t", b"before", partition=0)
        for call in (producer.send, producer.submit, producer.submit_nowait):
            with pytest.raises(InvalidArgument, match=named):
                await outcome(call, **{"topic": "t", **arguments})
        assert (await kept).offset == 0


async def test_an_oversized_record_is_refused_with_its_sizes(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, max_request_size=1000) as producer:
        with pytest.raises(RecordRejected, match=r"value 990 bytes, key 20 bytes.*max_request_size allows 1000"):
            producer.submit_nowait("t", b"x" * 990, b"k" * 20)
        await producer.send("t", b"x" * 990)


async def test_bytes_like_values_are_accepted(broker: Broker) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers) as producer:
        await producer.send("t", bytearray(b"a"))  # type: ignore[arg-type]  # typed as bytes, also accepted
        await producer.send("t", memoryview(b"b"))  # type: ignore[arg-type]  # typed as bytes, also accepted
        assert cluster.values() == [b"a", b"b"]


# --- many -----------------------------------------------------------------------------------------------------------


async def test_send_many_returns_the_offsets_of_all_records(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        result = await producer.send_many("one", [b"%d" % number for number in range(25_000)])
        assert (result.count, result.delivered, result.failed) == (25_000, 25_000, 0)
        assert result.ranges == {0: [(0, 24_999)]}
        result.raise_for_errors()
        records: list[Any] = [
            ProducerRecord(b"v", b"k", partition=2),
            b"plain",
            ProducerRecord(None, b"k", headers=[("h", b"")]),
        ]
        result = await producer.send_many("t", records)
        assert result.delivered == 3
        assert sum(last - first + 1 for ranges in result.ranges.values() for first, last in ranges) == 3


async def test_send_many_waits_for_room(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, buffer_memory=200_000, max_request_size=10_000) as producer:
        result = await producer.send_many("t", [b"x" * 1000] * 2000)
        assert result.delivered == 2000
        assert producer.buffered == 0


async def test_send_many_reports_the_errors_of_delivery(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = Script(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            result = await producer.send_many("t", [b"a", b"b"])
            assert (result.delivered, result.failed) == (0, 2)
            with pytest.raises(KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                result.raise_for_errors()


async def test_send_many_refuses_values_of_other_types(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        with pytest.raises(InvalidArgument, match="iterable"):
            await producer.send_many("t", b"bytes")  # type: ignore[arg-type]  # the mistake in question
        with pytest.raises(InvalidArgument, match="ProducerRecord"):
            await producer.send_many("t", [(b"v", b"k")])  # type: ignore[list-item]  # the mistake in question
        with pytest.raises(InvalidArgument, match="value must be bytes"):
            await producer.send_many("t", [b"good", 5])  # type: ignore[list-item]  # the mistake in question


# --- deadlines, flush, close ----------------------------------------------------------------------------------------


async def test_a_topic_that_does_not_exist_fails_when_its_time_is_over(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, delivery_timeout_ms=300) as producer:
        with pytest.raises(KafkaError, match="nowhere") as caught:
            await producer.send("nowhere", b"a")
        assert isinstance(caught.value, DeliveryFailed | InvalidRequestError) or "UNKNOWN_TOPIC" in str(caught.value)
        assert (await producer.send("t", b"a")).offset == 0


async def test_one_deadline_covers_all_attempts_and_its_error_names_the_last(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = lambda tp, data: int(ErrorCode.NOT_ENOUGH_REPLICAS)
        async with Producer(cluster.bootstrap_servers, **quick, delivery_timeout_ms=200) as producer:
            with pytest.raises(DeliveryFailed, match="NOT_ENOUGH_REPLICAS") as caught:
                await producer.send("t", b"a")
            assert caught.value.stage in ("retrying", "in flight")
            assert 0.19 <= caught.value.elapsed < 10
            assert caught.value.last_error is not None
            with anyio.fail_after(5):
                while producer.buffered:  # its deadline may have ended in flight: then the response frees the room
                    await anyio.lowlevel.checkpoint()
            cluster.node.on_partition = lambda tp, data: None
            assert (await producer.send("t", b"b")).offset == 0


async def test_a_request_without_a_response_ends_at_the_deadline(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_request = never_answer
        async with Producer(cluster.bootstrap_servers, **quick, delivery_timeout_ms=200) as producer:
            with pytest.raises(DeliveryFailed, match="in flight"):
                await producer.send("t", b"a")
            assert producer.buffered > 0  # its bytes may still be in flight
            await producer.close(timeout=0)


async def test_a_broker_that_is_gone_ends_at_the_deadline(quick: Quick) -> None:
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **quick, delivery_timeout_ms=400) as producer,
    ):
        await producer.send("t", b"a")
        cluster.node.stop()
        with pytest.raises(DeliveryFailed) as caught:
            await producer.send("t", b"b")
        assert isinstance(caught.value.last_error, ConnectionFailed)


async def test_a_broker_that_returns_gets_the_waiting_records(quick: Quick) -> None:
    async with (
        scripted_cluster() as cluster,
        Producer(cluster.bootstrap_servers, **quick, reconnect_backoff_max_ms=20) as producer,
    ):
        await producer.send("t", b"a")
        cluster.node.stop()
        delivery = await producer.submit("t", b"b")
        await cluster.node.start()
        assert (await delivery).offset == 1


async def test_a_flush_does_not_wait_out_the_linger(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, linger_ms=60_000) as producer:
        deliveries = [await producer.submit("t", b"x") for _ in range(10)]
        with anyio.fail_after(5):
            await producer.flush()
        assert all(delivery.done() for delivery in deliveries)
        await producer.flush()


async def test_a_flush_ends_at_its_timeout_and_names_the_remaining_records(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_request = never_answer
        async with Producer(cluster.bootstrap_servers, **quick) as producer:
            for _ in range(3):
                await producer.submit("t", b"x")
            with pytest.raises(RequestTimedOut, match="3 record"):
                await producer.flush(timeout=0.05)
            left = await producer.close(timeout=0)
        assert [record.value for record in left] == [b"x"] * 3


async def test_close_delivers_accepted_records(broker: Broker) -> None:
    producer = Producer(broker.bootstrap_servers, linger_ms=60_000)
    await producer.start()
    deliveries = [await producer.submit("t", b"x") for _ in range(100)]
    assert await producer.close() == []
    assert sorted({delivery.result().topic for delivery in deliveries}) == ["t"]
    assert await producer.close() == []


async def test_close_returns_the_records_that_could_not_be_delivered(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        producer = Producer(cluster.bootstrap_servers, **quick, linger_ms=60_000)
        await producer.start()
        await producer.send("t", b"there")
        cluster.node.on_request = never_answer
        in_flight = await producer.submit("t", b"a", b"k", headers=[("h", b"1")], timestamp=77)
        with pytest.raises(RequestTimedOut):
            await producer.flush(timeout=0.01)
        waiting = await producer.submit("t", b"b")
        unknown = await producer.submit("elsewhere", b"c", partition=3)
        left = await producer.close(timeout=0.01)
        assert left[0] == Undelivered("t", 0, b"k", b"a", (("h", b"1"),), 77, True)
        assert {(record.topic, record.partition, record.value) for record in left} == {
            ("t", 0, b"a"), ("t", 0, b"b"), ("elsewhere", 3, b"c"),
        }  # fmt: skip
        for delivery in (in_flight, waiting, unknown):
            assert isinstance(delivery.exception(), ClosedError)


async def test_a_failure_that_is_not_awaited_is_logged_once(quick: Quick, caplog: pytest.LogCaptureFixture) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_partition = Script(ErrorCode.INVALID_RECORD, None, ErrorCode.INVALID_RECORD)
        with caplog.at_level(logging.ERROR, "aiokwire.producer"):
            async with Producer(cluster.bootstrap_servers, **quick) as producer:
                for _ in range(3):
                    await producer.submit("t", b"x", b"the-key")
                await producer.flush()
                gc.collect()
                assert len(caplog.records) == 1
                assert "3 record(s) for t[0], the first with key b'the-key'" in caplog.text
                await producer.send("t", b"fine")
                with pytest.raises(RecordRejected):
                    await producer.send("t", b"awaited")
            gc.collect()
        assert len(caplog.records) == 1


# --- back-pressure --------------------------------------------------------------------------------------------------


def small(**options: Any) -> dict[str, Any]:
    return {"buffer_memory": 6000, "max_request_size": 2000, "batch_size": 1000, **options}


async def test_a_full_buffer_refuses_submit_nowait_and_names_the_sizes(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.node.on_request = never_answer
        async with Producer(cluster.bootstrap_servers, **quick, **small()) as producer:
            assert fill(producer) > 0
            with pytest.raises(BufferFullError) as caught:
                producer.submit_nowait("t", b"x" * 900)
            assert caught.value.limit == 6000
            assert caught.value.in_use + caught.value.needed > 6000
            assert caught.value.in_use <= 6000
            await producer.close(timeout=0)


async def test_waiting_records_are_accepted_in_order(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **small()) as producer:
        await producer.partitions_for("t")
        values = [b"%03d" % number + b"x" * 500 for number in range(200)]
        async with anyio.create_task_group() as group:
            for value in values:
                group.start_soon(producer.send, "t", value)
        assert cluster.values() == values
        assert producer.buffered == 0
        assert producer.waiting == 0


async def test_a_cancelled_wait_for_room_takes_nothing(quick: Quick) -> None:
    gate = anyio.Event()

    async def wait_for_gate(request: produce.ProduceRequest) -> bool | None:
        await gate.wait()
        return None

    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **small()) as producer:
        await producer.partitions_for("t")
        cluster.node.on_request = wait_for_gate
        taken = fill(producer)
        for _ in range(5):
            with anyio.move_on_after(0.01):
                await producer.submit("t", b"never" * 100)
        with anyio.move_on_after(0.01):
            await producer.send("t", b"never" * 100)
        assert producer.waiting == 0
        gate.set()
        await producer.flush()
        assert cluster.values() == [b"x" * 900] * taken
        assert producer.buffered == 0


async def test_a_wait_for_room_ends_at_the_delivery_timeout(quick: Quick) -> None:
    async with (
        scripted_cluster() as cluster,
        Producer(
            cluster.bootstrap_servers,
            **quick,
            **small(delivery_timeout_ms=200, buffer_memory=5000),  # five batches, all in flight
        ) as producer,
    ):
        await producer.send("t", b"0")  # the first batch of a sequence is sent alone
        cluster.node.on_request = never_answer
        fill(producer)
        with pytest.raises(BufferFullError, match="no room"):
            await producer.submit("t", b"x" * 900)
        await producer.close(timeout=0)


async def test_a_cancelled_send_leaves_the_accounting_exact(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        for turns in range(12):
            async with anyio.create_task_group() as group:
                group.start_soon(producer.send, "t", b"x" * 100)
                for _ in range(turns):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
        await producer.flush()
        assert producer.buffered == 0
        assert producer.health().records == 0
        assert len(cluster.values()) >= 10


# --- misuse ---------------------------------------------------------------------------------------------------------


async def test_use_before_start_and_after_close_is_refused(broker: Broker) -> None:
    producer = Producer(broker.bootstrap_servers)
    with pytest.raises(ClosedError, match="not started"):
        producer.submit_nowait("t", b"x")
    with pytest.raises(ClosedError, match="not started"):
        await producer.flush()
    await producer.start()
    await producer.close()
    for call in (producer.send, producer.submit, producer.submit_nowait):
        with pytest.raises(ClosedError, match="closed"):
            await outcome(call, topic="t", value=b"x")
    with pytest.raises(ClosedError, match="closed"):
        await producer.start()
    with pytest.raises(ClosedError):
        await producer.partitions_for("t")


async def test_use_from_another_thread_is_refused(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"x")
        with pytest.raises(ClosedError, match="another event loop"):
            await anyio.to_thread.run_sync(producer.submit_nowait, "t", b"x")


async def test_use_after_a_fork_is_refused(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"x")
        pid = os.fork()
        if pid == 0:  # the child: its exit status is the result
            status = 1
            try:
                producer.submit_nowait("t", b"x")
            except ClosedError as error:
                status = 0 if "fork" in str(error) else 2
            finally:
                os._exit(status)
        _, status = await anyio.to_thread.run_sync(os.waitpid, pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0


async def test_a_start_without_a_responding_address_fails() -> None:
    producer = Producer("127.0.0.1:1", bootstrap_timeout_ms=0)
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1"):
        await producer.start()
    assert await producer.close() == []


async def test_a_second_start_waits_for_the_first() -> None:
    async with Broker(topics={"t": 1}, journal=1000) as broker:
        producer = Producer(broker.bootstrap_servers, transactional_id="tx")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(producer.start)
            await anyio.lowlevel.checkpoint()
            await producer.start()
            async with producer.transaction():
                await producer.send("t", b"x")
        await producer.close()
        assert len(broker.journal.of(ApiKey.INIT_PRODUCER_ID)) == 1


def test_a_producer_is_created_without_a_loop_and_methods_that_are_not_overridden_stay_compiled() -> None:
    class Loud(Producer[bytes, bytes]):
        def submit_nowait(self, topic: str, *args: Any, **named: Any) -> Any:
            return "mine"

    assert Loud("localhost:9092").submit_nowait("t", b"x") == "mine"
    assert "new" in repr(Producer("localhost:9092"))
