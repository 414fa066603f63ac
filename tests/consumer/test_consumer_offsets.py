"""Start positions, commits and rewinds of a consumer on the embedded broker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, FetchState
from aiokwire.consumer.offset_reset import begin
from aiokwire.consumer.positions import PartitionState
from aiokwire.errors import AuthorizationError, ConfigurationError, InvalidArgument, NoOffset
from aiokwire.producer import Producer
from aiokwire.protocol.messages import offset_fetch
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker, kafka_broker_options
from aiokwire.types import GroupMetadata, OffsetAndMetadata, OffsetReset, TopicPartition

__all__ = ["kafka_broker", "kafka_broker_options"]

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "metadata_min_interval_ms": 1,
    "fetch_max_wait_ms": 50,
}


@asynccontextmanager
async def reader_of(
    broker: Broker, *partitions: TopicPartition, **options: Any
) -> AsyncIterator[Consumer[bytes, bytes]]:
    given: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", **QUICK, **options}
    async with Consumer(partitions=partitions or [ONE], bootstrap_servers=broker.bootstrap_servers, **given) as reader:
        yield reader


@pytest.fixture
async def broker(kafka_broker: Broker) -> Broker:
    """Fill two partitions with 20 records each, ten to a batch."""
    await kafka_broker.create_topic("t", 2)
    async with Producer(kafka_broker.bootstrap_servers) as producer:
        for _ in range(2):
            for partition in (0, 1):
                for _ in range(10):
                    await producer.submit("t", b"x", partition=partition)
            await producer.flush()
    return kafka_broker


async def offsets(reader: Consumer[Any, Any], count: int, *only: TopicPartition) -> list[int]:
    seen: list[int] = []
    with anyio.fail_after(5):
        while len(seen) < count:
            records = await reader.getmany(count - len(seen), partitions=only or None)
            seen += [record.offset for record in records]
    return seen


# --- start positions --------------------------------------------------------------------------------------------------


async def test_a_partition_starts_at_the_committed_offset_or_by_the_policy(broker: Broker) -> None:
    async with reader_of(broker, ONE, TWO) as reader:
        await reader.commit({ONE: 13})
        assert await reader.committed() == {ONE: OffsetAndMetadata(13), TWO: None}
    async with reader_of(broker, ONE, TWO) as reader:
        assert (await offsets(reader, 1, ONE), await offsets(reader, 1, TWO)) == ([13], [0])
    async with reader_of(broker, ONE, TWO, group_id="another") as reader:
        assert await offsets(reader, 1, ONE) == [0]


async def test_without_a_committed_offset_and_a_policy_reading_raises(broker: Broker) -> None:
    async with reader_of(broker, auto_offset_reset="none") as reader:
        with pytest.raises(NoOffset, match="no position"):
            await reader.getone(timeout=5)


async def test_a_seek_right_after_the_start_overrides_the_committed_offset(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        await reader.commit({ONE: 13})
    held = broker.faults.on(ApiKey.OFFSET_FETCH).hold()
    async with reader_of(broker) as reader:
        await held.arrived()
        reader.seek(ONE, 4)
        held.release()
        assert await offsets(reader, 2) == [4, 5]


async def test_the_start_waits_for_an_open_transaction_with_the_groups_offsets(broker: Broker) -> None:
    async with Producer(broker.bootstrap_servers, transactional_id="tx", **_of_producer()) as producer:
        async with producer.transaction() as tx:
            await tx.send_offsets({ONE: 7}, "g")
            async with reader_of(broker) as reader:
                assert await reader.getmany(timeout=0.1) == []
                asked = broker.journal.requests(offset_fetch.OffsetFetchRequest)
                assert len(asked) > 1
                assert all(request.require_stable for request in asked)
        async with reader_of(broker) as reader:
            assert await offsets(reader, 1) == [7]


async def test_an_error_of_the_offset_fetch_is_raised_and_the_next_call_retries(broker: Broker) -> None:
    broker.faults.on(ApiKey.OFFSET_FETCH).error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    async with reader_of(broker) as reader:
        with pytest.raises(AuthorizationError, match="'g'"):
            await reader.getone(timeout=5)
        assert await offsets(reader, 1) == [0]


async def test_partitions_assigned_later_start_at_the_committed_offset(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        await reader.commit({TWO: 9})
        assert await offsets(reader, 3) == [0, 1, 2]
        await reader.assign([ONE, TWO])
        assert await offsets(reader, 2, TWO) == [9, 10]
        assert await offsets(reader, 1, ONE) == [3]


def test_a_position_from_an_older_leader_epoch_is_validated() -> None:
    for epoch, expected in ((2, FetchState.AWAIT_VALIDATION), (3, FetchState.FETCHING), (-1, FetchState.FETCHING)):
        state = PartitionState(ONE)
        state.source.follow_epoch(3)
        begin(state, OffsetAndMetadata(5, "", epoch), OffsetReset.LATEST)
        assert (state.state, state.position, state.cursor.fetch_epoch) == (expected, 5, epoch)


# --- commit -----------------------------------------------------------------------------------------------------------


async def test_a_commit_covers_the_records_returned_by_every_way_to_read(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        await offsets(reader, 3)
        await reader.commit()
        assert await reader.committed(ONE) == {ONE: OffsetAndMetadata(3, "", 0)}
        async for _ in reader:
            break
        await reader.commit()
        assert (await reader.committed(ONE))[ONE] == OffsetAndMetadata(4, "", 0)
        async for batch in reader.batches():
            assert batch.next_offset == 10
            break
        await reader.commit()
        assert (await reader.committed(ONE))[ONE] == OffsetAndMetadata(10, "", 0)
        with pytest.raises(InvalidArgument, match="None"):
            await reader.commit({ONE: None})  # type: ignore[arg-type]  # what is refused
        with pytest.raises(InvalidArgument, match="0 or more"):
            await reader.commit({ONE: -1})


async def test_the_leader_epoch_of_a_position_is_that_of_the_record_before_it(broker: Broker) -> None:
    broker.faults.move_leader("t", 0, broker.faults.leader("t", 0))
    async with Producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"x", partition=0)
    async with reader_of(broker, group_id=None, auto_offset_reset=1) as reader:
        assert reader.positions() == {ONE: None}
        for count, epoch in ((20, 0), (1, 1)):
            await offsets(reader, count)
            place = reader.positions()[ONE]
            assert place is not None
            assert place.leader_epoch == epoch


async def test_without_a_group_nothing_is_committed(broker: Broker) -> None:
    async with reader_of(broker, group_id=None) as reader:
        for call in (reader.commit(), reader.committed(ONE)):
            with pytest.raises(ConfigurationError, match="group_id"):
                await call
        with pytest.raises(ConfigurationError, match="group_id"):
            reader.group_metadata()


async def test_a_consumer_of_assigned_partitions_commits_without_a_member_id(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        assert reader.group_metadata() == GroupMetadata("g")


# --- rewinds ----------------------------------------------------------------------------------------------------------


async def test_a_rewind_returns_the_same_records_again(broker: Broker) -> None:
    async with reader_of(broker, ONE, TWO) as reader:
        await offsets(reader, 3, ONE)
        before = reader.positions()
        first = await offsets(reader, 12, ONE), await offsets(reader, 12, TWO)
        reader.rewind(before)
        assert reader.positions()[ONE] == before[ONE]
        assert (await offsets(reader, 12, ONE), await offsets(reader, 12, TWO)) == first


async def test_a_rewind_within_a_loop_takes_effect_at_the_next_record(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        seen = []
        async for record in reader:
            seen.append(record.offset)
            if seen == [0, 1, 2]:
                reader.rewind({ONE: 1})
            elif len(seen) == 5:
                break
        assert seen == [0, 1, 2, 1, 2]


async def test_a_rewind_to_the_current_position_keeps_fetched_records(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        await offsets(reader, 3)
        broker.journal.clear()
        reader.rewind(reader.positions())
        assert await offsets(reader, 7) == list(range(3, 10))
        assert not [entry for entry in broker.journal if entry.api == ApiKey.OFFSET_FETCH]


async def test_a_rewind_to_no_position_returns_to_the_start_position(broker: Broker) -> None:
    async with reader_of(broker, group_id=None, auto_offset_reset=1) as reader:
        before = reader.positions()
        assert before == {ONE: None}
        reader.rewind(before)
        assert await offsets(reader, 5) == [0, 1, 2, 3, 4]
        reader.rewind(before)
        assert await offsets(reader, 2) == [0, 1]
        reader.rewind({TWO: 3, ONE: None})  # partitions that are not assigned are ignored
        assert await offsets(reader, 1) == [0]
        with pytest.raises(InvalidArgument, match="0 or more"):
            reader.rewind({ONE: -3})


async def test_resume_from_committed_continues_at_the_committed_offsets(broker: Broker) -> None:
    async with reader_of(broker, ONE, TWO) as reader:
        before = reader.positions()
        await offsets(reader, 4, ONE)
        await offsets(reader, 6, TWO)
        await reader.commit({ONE: 4})
        reader.resume_from_committed(before)
        assert (await offsets(reader, 1, ONE), await offsets(reader, 1, TWO)) == ([4], [0])


async def test_resume_from_committed_waits_for_the_end_of_an_open_transaction(broker: Broker) -> None:
    async with (
        Producer(broker.bootstrap_servers, transactional_id="tx", **_of_producer()) as producer,
        reader_of(broker) as reader,
    ):
        async with producer.transaction() as tx:
            before = reader.positions()
            await offsets(reader, 4)
            await tx.send_offsets({ONE: 4}, "g")
            reader.resume_from_committed(before)
            assert await reader.getmany(timeout=0.1) == []
        assert await offsets(reader, 1) == [4]


def _of_producer() -> dict[str, Any]:
    return {name: value for name, value in QUICK.items() if name != "fetch_max_wait_ms"}
