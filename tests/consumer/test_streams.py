"""Several streams of one consumer: their partitions, processed records, and closing."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, RecordStream
from aiokwire.errors import InvalidArgument
from aiokwire.types import TopicPartition
from tests.consumer.groups import assigned, fill, member, t, until

Record = tuple[int, int]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 4}) as broker:
        await fill(broker, 4)
        yield broker


def reader_of(broker: Broker, *partitions: TopicPartition, **options: Any) -> Consumer[bytes, bytes]:
    given = {"partitions": partitions or sorted(t(0, 1, 2, 3)), "auto_offset_reset": "earliest", **options}
    return Consumer(bootstrap_servers=broker.bootstrap_servers, **given)


async def take(stream: RecordStream[bytes, bytes], count: int = 1) -> list[Record]:
    with anyio.fail_after(5):
        return [(record.partition, record.offset) for record in [await anext(stream) for _ in range(count)]]


def finished(reader: Consumer[Any, Any], number: int) -> int | None:
    place = reader._reader.processed.finished(reader._subscription.states[TopicPartition("t", number)])
    return None if place is None else place.offset


async def test_each_record_is_returned_once_in_the_order_of_its_partition(broker: Broker) -> None:
    seen: list[list[Record]] = [[], [], []]

    async def work(stream: RecordStream[bytes, bytes], into: list[Record]) -> None:
        async for record in stream:
            into.append((record.partition, record.offset))  # noqa: PERF401 - the list is read meanwhile

    async with reader_of(broker) as reader, anyio.create_task_group() as tasks:
        streams = reader.streams(3)
        assert frozenset().union(*(stream.assignment for stream in streams)) == t(0, 1, 2, 3)
        for stream, into in zip(streams, seen, strict=True):
            tasks.start_soon(work, stream, into)
        await until(lambda: sum(map(len, seen)) == 40)
        await reader.close()  # ends the streams
    for number in range(4):
        owners = [[offset for partition, offset in into if partition == number] for into in seen]
        assert sorted(owners) == [[], [], list(range(10))]


async def test_a_record_is_processed_when_its_own_stream_requests_the_next(broker: Broker) -> None:
    async with reader_of(broker, *sorted(t(0, 1))) as reader:
        one, two = reader.streams(2)
        await take(one, 3)
        await take(two, 5)
        assert (finished(reader, 0), finished(reader, 1)) == (2, 4)
        await take(two, 3)
        assert (finished(reader, 0), finished(reader, 1)) == (2, 7)
        await take(one)
        assert (finished(reader, 0), finished(reader, 1)) == (3, 7)


async def test_the_unprocessed_record_of_a_closed_stream_moves_to_another_with_its_partitions(broker: Broker) -> None:
    async with reader_of(broker, *sorted(t(0, 1))) as reader:
        one, two = reader.streams(2)
        assert await take(one, 4) == [(0, offset) for offset in range(4)]
        await one.aclose()
        assert (one.assignment, two.assignment) == (frozenset(), frozenset(t(0, 1)))
        assert [record async for record in one] == []
        seen = await take(two, 17)
        assert [offset for partition, offset in seen if partition == 0] == list(range(3, 10))
        assert [offset for partition, offset in seen if partition == 1] == list(range(10))


async def test_an_acked_record_is_not_returned_by_another_stream(broker: Broker) -> None:
    async with reader_of(broker, TopicPartition("t", 0), group_id="g") as reader:
        one, two = reader.streams(2)
        record = await anext(one)
        reader.ack(record)
        one.close()
        assert await take(two) == [(0, 1)]


async def test_the_partitions_of_a_deleted_stream_move_to_another(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        one, two = reader.streams(2)

        async def work(stream: RecordStream[bytes, bytes]) -> None:
            await take(stream, 2)

        await work(one)
        del one
        gc.collect()
        await until(lambda: two.assignment == t(0, 1, 2, 3))
        assert sorted(await take(two, 39)) == [(number, offset) for number in range(4) for offset in range(10)][1:]


async def test_closing_a_waiting_stream_ends_it(broker: Broker) -> None:
    async with reader_of(broker, TopicPartition("t", 0)) as reader:
        _one, two = reader.streams(2)
        seen: list[object] = []

        async def work() -> None:
            async with two:
                seen.append([record async for record in two])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await until(lambda: reader.health().is_awaited)
            two.close()
        assert seen == [[]]


async def test_a_moving_partition_waits_until_its_old_stream_has_processed_its_record(broker: Broker) -> None:
    async with reader_of(broker, *sorted(t(0, 1, 2))) as reader:
        one, two = reader.streams(2)
        assert (one.assignment, two.assignment) == (frozenset(t(0, 1)), frozenset(t(2)))
        seen = await take(one)
        while seen[-1][0] != 1:
            seen += await take(one)
        await reader.assign(sorted(t(0, 1)))
        assert (one.assignment, two.assignment) == (frozenset(t(0)), frozenset(t(1)))
        with anyio.move_on_after(0.1) as waiting:
            await anext(two)
        assert waiting.cancelled_caught
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anext, one)
            assert await take(two) == [(1, seen[-1][1] + 1)]
            tasks.cancel_scope.cancel()


async def test_streams_follow_the_assignment_of_the_group(broker: Broker) -> None:
    async with member(broker) as first:
        await assigned(first, 0, 1, 2, 3)
        streams = first.streams(2)
        assert [len(stream.assignment) for stream in streams] == [2, 2]
        async with member(broker) as second:
            with anyio.fail_after(5):
                while len(first.assignment) > 2 or len(second.assignment) < 2:
                    await first.getmany(timeout=0.01)
                    await second.getmany(timeout=0.01)
            assert [len(stream.assignment) for stream in streams] == [1, 1]
            assert frozenset().union(*(stream.assignment for stream in streams)) == first.assignment


async def test_records_before_the_last_of_each_stream_are_committed_on_close(broker: Broker) -> None:
    async with member(broker) as reader:
        await assigned(reader, 0, 1, 2, 3)
        streams = reader.streams(4)
        for count, stream in enumerate(streams, 1):
            await take(stream, count)
    async with reader_of(broker, group_id="g") as reader:
        committed = await reader.committed()
    assert sorted(0 if place is None else place.offset for place in committed.values()) == [0, 1, 2, 3]


async def test_there_is_one_set_of_streams_at_a_time(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        with pytest.raises(InvalidArgument, match="at least 1"):
            reader.streams(0)
        streams = reader.streams(2)
        with pytest.raises(InvalidArgument, match="2 open streams"):
            reader.streams(2)
        for stream in streams:
            stream.close()
        (only,) = reader.streams(1)
        assert only.assignment == t(0, 1, 2, 3)
