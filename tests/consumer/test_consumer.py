"""The consumer on the embedded broker, as users use it."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pyarrow as pa
import pytest

from aiokwire.admin import Admin
from aiokwire.broker import Broker
from aiokwire.consumer import Batch, Consumer, DeserializationError
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthorizationError,
    BrokerError,
    ClosedError,
    ConfigurationError,
    ConnectionFailed,
    InvalidArgument,
    NoOffset,
    OffsetOutOfRange,
    RequestTimedOut,
)
from aiokwire.producer import Producer
from aiokwire.protocol.messages import metadata
from aiokwire.types import OffsetAndTimestamp, TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2, "single": 1}) as broker:
        yield broker


async def fill(broker: Broker, *values: bytes, topic: str = "t", partition: int = 0, **options: Any) -> None:
    async with Producer(broker.bootstrap_servers, **options) as producer:
        for index, value in enumerate(values):
            await producer.submit(topic, value, partition=partition, timestamp=1000 + index)
        await producer.flush()


def consumer(broker: Broker, *topics: str, **options: Any) -> Consumer[Any, Any]:
    options.setdefault("auto_offset_reset", "earliest")
    return Consumer(*topics, bootstrap_servers=broker.bootstrap_servers, **options)


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


# --- ways to read -----------------------------------------------------------------------------------------------------


async def test_records_of_a_partition_are_returned_once_and_in_order(broker: Broker) -> None:
    await fill(broker, *numbers(5000))
    async with consumer(broker, "t") as reader:
        seen = []
        async for record in reader:
            seen.append(record.value)
            if len(seen) == 5000:
                break
        assert seen == numbers(5000)
        assert await reader.position(T0) == 5000


async def test_the_position_advances_with_every_record_of_a_loop(broker: Broker) -> None:
    await fill(broker, *numbers(10))
    async with consumer(broker, "t") as reader:
        async for record in reader:
            assert await reader.position(T0) == record.offset + 1
            if record.offset == 9:
                break


async def test_loops_getone_getmany_and_batches_share_one_position(broker: Broker) -> None:
    await fill(broker, *numbers(100))
    async with consumer(broker, "t") as reader:
        seen = []
        async for record in reader:
            seen.append(record.value)
            if len(seen) == 10:
                break
        seen.append((await reader.getone(timeout=5)).value)
        seen += [record.value for record in await reader.getmany(max_records=9, timeout=5)]
        async for batch in reader.batches():
            assert batch.base_offset == 20
            seen += batch.values()
            if batch.next_offset == 100:
                break
        assert seen == numbers(100)


async def test_getmany_returns_available_records_up_to_the_limit(broker: Broker) -> None:
    await fill(broker, *numbers(700))
    async with consumer(broker, "t") as reader:
        first = await reader.getmany(timeout=5)
        assert len(first) == 500, "the default of max_poll_records"
        assert len(await reader.getmany(max_records=1000, timeout=5)) == 200
        assert await reader.getmany(timeout=0.01) == []


async def test_getmany_of_some_partitions_does_not_affect_the_others(broker: Broker) -> None:
    await fill(broker, *numbers(10), partition=0)
    await fill(broker, *numbers(10), partition=1)
    async with consumer(broker, "t") as reader:
        records = await reader.getmany(timeout=5, partitions=[T1])
        assert {record.partition for record in records} == {1}
        assert await reader.position(T0) == 0
        assert {record.partition for record in await reader.getmany(timeout=5)} == {0}


async def test_getone_raises_when_its_timeout_ends(broker: Broker) -> None:
    async with consumer(broker, "t") as reader:
        with pytest.raises(RequestTimedOut):
            await reader.getone(timeout=0.01)


async def test_a_batch_has_records_values_and_columns(broker: Broker) -> None:
    await fill(broker, *numbers(50), topic="single")
    async with consumer(broker, "single") as reader:
        seen: list[Batch[bytes, bytes]] = []
        async for batch in reader.batches():
            seen.append(batch)
            if batch.next_offset == 50:
                break
        assert sum(batch.count for batch in seen) == 50
        assert [value for batch in seen for value in batch.values()] == numbers(50)
        assert [record.offset for batch in seen for record in batch.records()] == list(range(50))
        columns = seen[0].to_arrow()
        assert isinstance(columns, pa.RecordBatch)
        assert columns.num_rows == seen[0].count
        assert columns.column("value").to_pylist() == seen[0].values()
        assert seen[0].topic_partition == ("single", 0)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
async def test_compressed_batches_large_and_small_are_read(broker: Broker, codec: str) -> None:
    values = [b"%d-" % number + bytes(range(256)) * 8 for number in range(300)]
    await fill(broker, *values, compression_type=codec)
    async with consumer(broker, "t") as reader:
        seen: list[bytes | None] = []
        while len(seen) < 300:
            seen += [record.value for record in await reader.getmany(timeout=5)]
        assert seen == values
        reader.seek(T0, 100)
        assert (await reader.getone(timeout=5)).value == values[100]


async def test_keys_and_values_are_deserialized_and_nulls_are_not(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"7", key=b"k", partition=0)
        await producer.send("t", None, partition=0)
    async with consumer(broker, "t", key_deserializer=bytes.decode, value_deserializer=int) as reader:
        first, second = await reader.getone(timeout=5), await reader.getone(timeout=5)
        assert (first.key, first.value, first.offset) == ("k", 7, 0)
        assert (second.key, second.value) == (None, None)


async def test_a_record_that_cannot_be_deserialized_raises_and_can_be_skipped(broker: Broker) -> None:
    await fill(broker, b"1", b"2", b"no number", b"4")
    async with consumer(broker, "t", value_deserializer=int) as reader:
        assert [(await reader.getone(timeout=5)).value for _ in range(2)] == [1, 2]
        for _ in range(2):  # the position stays until the user skips the record
            with pytest.raises(DeserializationError) as caught:
                await reader.getone(timeout=5)
            assert caught.value.record.value == b"no number"
            assert await reader.position(T0) == 2
        reader.seek(T0, caught.value.offset + 1)
        assert (await reader.getone(timeout=5)).value == 4


# --- start positions --------------------------------------------------------------------------------------------------


async def test_latest_skips_existing_records(broker: Broker) -> None:
    await fill(broker, b"old")
    async with consumer(broker, "t", auto_offset_reset="latest") as reader:
        assert await reader.position(T0) == 1
        await fill(broker, b"new")
        assert (await reader.getone(timeout=5)).value == b"new"


async def test_the_reset_policy_may_be_a_time_and_without_a_later_record_it_means_the_end(broker: Broker) -> None:
    await fill(broker, *numbers(10))
    moment = datetime.datetime.fromtimestamp(1.004, tz=datetime.UTC)
    async with consumer(broker, "t", auto_offset_reset=moment) as reader:
        assert (await reader.getone(timeout=5)).value == b"4"
        assert await reader.position(T1) == 0


async def test_the_policy_none_raises_with_the_partition_until_a_seek(broker: Broker) -> None:
    await fill(broker, b"a")
    async with consumer(broker, partitions=[T0], auto_offset_reset="none") as reader:
        with pytest.raises(NoOffset) as caught:
            await reader.getone(timeout=5)
        assert (caught.value.topic, caught.value.partition) == T0
        reader.seek(T0, 0)
        assert (await reader.getone(timeout=5)).value == b"a"


async def test_out_of_range_with_policy_none_raises_and_keeps_the_position(broker: Broker) -> None:
    await fill(broker, b"a")
    async with consumer(broker, partitions=[T0], auto_offset_reset="none") as reader:
        reader.seek(T0, 77)
        for _ in range(2):
            with pytest.raises(OffsetOutOfRange) as caught:
                await reader.getmany(timeout=5)
            assert caught.value.offset == 77
            assert await reader.position(T0) == 77


async def test_out_of_range_resets_by_the_policy(broker: Broker) -> None:
    await fill(broker, *numbers(3))
    async with consumer(broker, partitions=[T0]) as reader:
        reader.seek(T0, 1000)
        assert (await reader.getone(timeout=5)).value == b"0"


async def test_seek_to_the_end_and_to_the_beginning(broker: Broker) -> None:
    await fill(broker, *numbers(5))
    async with consumer(broker, "t") as reader:
        await reader.seek_to_end(T0)
        assert await reader.position(T0) == 5
        await fill(broker, b"after")
        assert (await reader.getone(timeout=5)).value == b"after"
        await reader.seek_to_beginning()
        assert (await reader.getone(timeout=5)).value == b"0"


async def test_new_partitions_are_read_from_their_start(broker: Broker) -> None:
    from aiokwire.admin import Admin

    async with consumer(broker, "single", auto_offset_reset="latest", metadata_max_age_ms=50) as reader:
        assert await reader.position(TopicPartition("single", 0)) == 0
        async with Admin(broker.bootstrap_servers) as admin:
            (await admin.create_partitions({"single": 2})).check()
        await fill(broker, b"early", topic="single", partition=1)
        record = await reader.getone(timeout=5)
        assert (record.partition, record.value) == (1, b"early")


async def test_a_recreated_topic_is_read_from_its_start(broker: Broker) -> None:
    from aiokwire.admin import Admin

    await fill(broker, *numbers(10), topic="single")
    async with consumer(broker, "single", metadata_max_age_ms=50) as reader:
        seen = 0
        while seen < 10:
            seen += len(await reader.getmany(timeout=5))
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.delete_topic("single")
            await admin.create_topic("single", 1)
        await fill(broker, b"recreated", topic="single")
        while True:
            try:
                record = await reader.getone(timeout=5)
                break
            except BrokerError:
                pass  # raised once for the deleted topic
        assert (record.offset, record.value) == (0, b"recreated")


# --- seek, pause, assign ----------------------------------------------------------------------------------------------


async def test_a_seek_discards_fetched_records(broker: Broker) -> None:
    await fill(broker, *numbers(100))
    async with consumer(broker, "t") as reader:
        await reader.getmany(max_records=10, timeout=5)
        reader.seek(T0, 50)
        assert await reader.position(T0) == 50
        assert (await reader.getone(timeout=5)).offset == 50
        reader.seek(T0, 3)
        assert [r.offset for r in await reader.getmany(max_records=2, timeout=5)] == [3, 4]


async def test_a_seek_within_a_loop_takes_effect_at_the_next_record(broker: Broker) -> None:
    await fill(broker, *numbers(20))
    async with consumer(broker, "t") as reader:
        seen = []
        async for record in reader:
            seen.append(record.offset)
            if seen == [0, 1, 2]:
                reader.seek(T0, 18)
            if len(seen) == 5:
                break
        assert seen == [0, 1, 2, 18, 19]


async def test_a_pause_within_a_loop_takes_effect_at_the_next_record_and_loses_none(broker: Broker) -> None:
    await fill(broker, *numbers(20), partition=0)
    await fill(broker, *numbers(20), partition=1)
    async with consumer(broker, "t") as reader:
        first = await reader.getone(timeout=5)
        held = TopicPartition("t", first.partition)
        reader.pause(held)
        assert reader.paused() == {held}
        others = [await reader.getone(timeout=5) for _ in range(20)]
        assert {record.partition for record in others} == {1 - first.partition}
        assert await reader.getmany(timeout=0.02) == []
        reader.resume(held)
        rest: list[int] = []
        while len(rest) < 19:
            rest += [record.offset for record in await reader.getmany(timeout=5)]
        assert rest == list(range(1, 20))


async def test_assign_keeps_the_positions_of_partitions_that_stay(broker: Broker) -> None:
    await fill(broker, *numbers(10), partition=0)
    await fill(broker, *numbers(10), partition=1)
    async with consumer(broker, partitions=[T0]) as reader:
        await reader.getmany(max_records=4, timeout=5)
        await reader.assign([T0, T1])
        assert reader.assignment == {T0, T1}
        assert await reader.position(T0) == 4
        await reader.assign([T1])
        assert [r.partition for r in await reader.getmany(max_records=100, timeout=5)] == [1] * 10
        with pytest.raises(InvalidArgument):
            await reader.position(T0)


async def test_subscribe_replaces_the_topic(broker: Broker) -> None:
    await fill(broker, b"one", topic="single")
    await fill(broker, b"two", topic="t")
    async with consumer(broker, "t") as reader:
        assert (await reader.getone(timeout=5)).value == b"two"
        await reader.subscribe("single")
        assert reader.subscription == {"single"}
        assert (await reader.getone(timeout=5)).value == b"one"
        assert reader.assignment == {TopicPartition("single", 0)}


async def test_beginning_and_end_offsets_and_offsets_for_times(broker: Broker) -> None:
    await fill(broker, *numbers(10))
    async with consumer(broker) as reader:
        assert await reader.partitions_for_topic("t") == {0, 1}
        assert await reader.beginning_offsets([T0, T1]) == {T0: 0, T1: 0}
        assert await reader.end_offsets([T0, T1]) == {T0: 10, T1: 0}
        found = await reader.offsets_for_times({T0: 1006, T1: 1006})
        assert found[T0] == OffsetAndTimestamp(6, 1006, 0)
        assert found[T1] is None


async def test_lag_needs_no_request(broker: Broker) -> None:
    await fill(broker, *numbers(10))
    async with consumer(broker, partitions=[T0]) as reader:
        await reader.getmany(max_records=3, timeout=5)
        assert reader.lag(T0) == 7


# --- lifecycle and mistakes -------------------------------------------------------------------------------------------


async def test_close_ends_a_loop_of_another_task(broker: Broker) -> None:
    reader = consumer(broker, "t")
    await reader.start()
    ended = anyio.Event()

    async def loop() -> None:
        async for _ in reader:
            raise AssertionError("there is nothing to read")
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(loop)
        await anyio.lowlevel.checkpoint()
        await reader.close()
        with anyio.fail_after(10):
            await ended.wait()
    with pytest.raises(ClosedError):
        await reader.getmany(timeout=1)
    await reader.close()


async def test_cancelling_a_second_start_does_not_affect_the_first(broker: Broker) -> None:
    await fill(broker, b"x", topic="single")
    reader = consumer(broker, "single")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader.start)
        await anyio.lowlevel.checkpoint()
        with anyio.CancelScope() as second:
            second.cancel()
            await reader.start()
    await reader.start()
    assert (await reader.getone(timeout=5)).value == b"x"
    await reader.close()


async def test_the_error_of_a_consumer_that_was_not_started_names_start(broker: Broker) -> None:
    reader = consumer(broker, "t")
    with pytest.raises(ClosedError, match="start"):
        await reader.getone()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("auto_offset_reset", "soonest"),
        ("auto_offset_reset", -5),
        ("auto_offset_reset", datetime.datetime(2026, 1, 1)),
        ("isolation_level", "serializable"),
        ("fetch_max_bytes", 0),
        ("fetch_memory", "64M"),
        ("check_crcs", 1),
        ("value_deserializer", "json"),
        ("fetch_min_byte", 1),
    ],
)
def test_a_wrong_option_fails_at_construction(option: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=option):
        Consumer("t", bootstrap_servers="localhost:1", **dict[str, Any]({option: value}))


def test_the_error_for_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="fetch_min_bytes"):
        Consumer("t", bootstrap_servers="localhost:1", fetch_min_byte=1)  # type: ignore[call-arg]  # on purpose


@pytest.mark.parametrize("partitions", [["t"], [("t",)], [("t", -1)], [("t", True)], [T0, 5]])
def test_invalid_partitions_are_refused(partitions: list[object]) -> None:
    with pytest.raises(InvalidArgument):
        Consumer(bootstrap_servers="localhost:1", partitions=partitions)  # type: ignore[arg-type]  # the mistake under test


def test_topics_together_with_partitions_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        Consumer("t", bootstrap_servers="localhost:1", partitions=[T0])


async def test_seek_in_an_unassigned_partition_is_refused(broker: Broker) -> None:
    async with consumer(broker, "t") as reader:
        with pytest.raises(InvalidArgument):
            reader.seek(TopicPartition("t", 9), 0)
        with pytest.raises(InvalidArgument):
            reader.seek(T0, -1)


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_missing_topics_are_read_as_soon_as_they_are_created(
    broker: Broker, caplog: pytest.LogCaptureFixture, group: str | None, protocol: str
) -> None:
    """Regression: `start` failed after a minute if another service creates the topics later."""
    options = {"group_id": group, "group_protocol": protocol} if group else {}
    async with consumer(broker, "single", "not-yet", auto_offset_reset="latest", **options) as reader:
        warned = [record.getMessage() for record in caplog.records if "not-yet" in record.getMessage()]
        assert len(warned) == 1, warned
        assert "topic 'not-yet' does not exist, and allow_auto_create_topics is off: check its name" in warned[0]
        assert await reader.getmany(timeout=0.01) == []
        async with Admin(broker.bootstrap_servers) as admin:
            await admin.create_topic("not-yet", 1)
        await fill(broker, *numbers(3), topic="not-yet")
        began = anyio.current_time()
        record = await reader.getone(timeout=10)
        assert (record.topic, record.offset) == ("not-yet", 0), (
            "records written before the topic was discovered are read, too"
        )
        assert anyio.current_time() - began < 5


async def test_start_raises_for_a_forbidden_topic_and_can_be_repeated(broker: Broker) -> None:
    reader = consumer(broker, "single")

    def forbid(request: metadata.MetadataRequest) -> metadata.MetadataResponse:
        node = metadata.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port)
        topic = metadata.MetadataResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name="single")
        return metadata.MetadataResponse(brokers=[node], topics=[topic])

    rule = broker.faults.on(metadata.MetadataRequest, times=None).respond(forbid)
    with pytest.raises(AuthorizationError, match="single"):
        await reader.start()
    rule.remove()
    await reader.start()
    await fill(broker, *numbers(1), topic="single")
    assert (await reader.getone(timeout=5)).offset == 0
    await reader.close()


async def test_the_error_names_a_partition_that_does_not_exist(broker: Broker) -> None:
    async with consumer(broker, partitions=[TopicPartition("t", 17)]) as reader:
        with pytest.raises(BrokerError, match=r"t\[17\]"):
            await reader.getone(timeout=5)


async def test_start_without_a_broker_raises() -> None:
    reader = Consumer("t", bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=0)
    with pytest.raises(ConnectionFailed):
        await reader.start()


# --- cancellation -----------------------------------------------------------------------------------------------------


async def test_a_cancelled_call_loses_no_record(broker: Broker) -> None:
    async with consumer(broker, "single") as reader:
        for timeout in (0.0, 0.001, 0.005):
            with anyio.move_on_after(timeout):
                await reader.getone()
            with anyio.move_on_after(timeout):
                await reader.getmany()
            with anyio.move_on_after(timeout):
                await anext(aiter(reader))
        await fill(broker, *numbers(3), topic="single")
        assert [(await reader.getone(timeout=5)).offset for _ in range(3)] == [0, 1, 2]


async def test_cancelled_calls_lose_and_duplicate_no_records(broker: Broker) -> None:
    await fill(broker, *numbers(300), topic="single")
    async with consumer(broker, "single") as reader:
        seen: list[int] = []
        turn = 0
        with anyio.fail_after(10):
            while len(seen) < 300:
                turn += 1
                with anyio.CancelScope() as scope:
                    if turn % 3 == 0:
                        scope.cancel()
                    if turn % 2:
                        seen.append((await reader.getone()).offset)
                    else:
                        seen += [record.offset for record in await reader.getmany(max_records=7)]
        assert seen == list(range(300))


async def test_several_tasks_share_the_records(broker: Broker) -> None:
    await fill(broker, *numbers(300), compression_type="lz4")
    async with consumer(broker, "t") as reader:
        seen: list[int] = []

        async def work() -> None:
            while len(seen) < 300:
                with anyio.move_on_after(0.2):
                    seen.append((await reader.getone()).offset)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(work)
        assert sorted(seen) == list(range(300))
