"""In every way to read, records count as processed when the next ones are requested."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.producer import Producer
from aiokwire.testing.plugin import kafka_broker, kafka_broker_options
from aiokwire.types import TopicPartition

__all__ = ["kafka_broker", "kafka_broker_options"]

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)


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


def reader_of(broker: Broker, *partitions: TopicPartition) -> Consumer[bytes, bytes]:
    return Consumer(partitions=partitions, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")


def finished(reader: Consumer[Any, Any], tp: TopicPartition = ONE) -> int | None:
    place = reader._reader.processed.finished(reader._subscription.states[tp])
    return None if place is None else place.offset


async def test_the_last_returned_record_is_not_processed_yet(broker: Broker) -> None:
    async with reader_of(broker, ONE) as reader:
        for offset in range(12):  # across the end of a batch
            assert (await reader.getone()).offset == offset
            assert finished(reader) == offset


async def test_the_last_record_of_the_fast_path_is_not_processed_yet(broker: Broker) -> None:
    async with reader_of(broker, ONE) as reader:
        count = 0
        async for record in reader:
            assert finished(reader) == record.offset
            count += 1
            if count == 20:
                break


async def test_a_list_or_a_batch_is_processed_when_the_next_is_requested(broker: Broker) -> None:
    async with reader_of(broker, ONE) as reader:
        await reader.getmany(7)
        assert finished(reader) == 0
        await reader.getmany(5)
        assert finished(reader) == 7
        batch = await anext(reader.batches())
        assert batch.base_offset == 12
        assert finished(reader) == 12
        assert await reader.getmany(timeout=0.01) == []
        assert finished(reader) == 20, "the next call requested more"


async def test_other_partitions_are_processed_as_far_as_they_were_returned(broker: Broker) -> None:
    async with reader_of(broker, ONE, TWO) as reader:
        await reader.position(ONE)
        await reader.position(TWO)
        first = await reader.getone()
        mine, other = (ONE, TWO) if first.partition == 0 else (TWO, ONE)
        assert (finished(reader, mine), finished(reader, other)) == (0, 0)
        await reader.getmany(3, partitions=[other])
        assert (finished(reader, mine), finished(reader, other)) == (1, 0)


async def test_processed_is_right_across_pauses_and_different_ways_to_read(broker: Broker) -> None:
    async with reader_of(broker, ONE) as reader:
        async for record in reader:
            if record.offset == 3:
                break
        reader.pause(ONE)
        assert finished(reader) == 3
        reader.resume(ONE)
        assert (await reader.getone()).offset == 4
        assert finished(reader) == 4
        async for record in reader:
            assert finished(reader) == record.offset
            if record.offset == 6:
                break


async def test_after_a_seek_the_new_position_counts(broker: Broker) -> None:
    async with reader_of(broker, ONE) as reader:
        await reader.getmany(7)
        reader.seek(ONE, 3)
        assert finished(reader) == 3
        await reader.getone()
        reader.seek(ONE, 15)
        assert finished(reader) == 15


async def test_progress_is_detected_without_a_call_per_record(broker: Broker) -> None:
    async with reader_of(broker, ONE) as reader:
        processed = reader._reader.processed
        assert processed.progressed_at(1.0, waiting=False) == 1.0
        assert processed.progressed_at(2.0, waiting=False) == 1.0
        records = aiter(reader)
        await anext(records)
        assert processed.progressed_at(3.0, waiting=False) == 3.0
        await anext(records)
        assert processed.progressed_at(4.0, waiting=False) == 4.0
        assert processed.progressed_at(5.0, waiting=False) == 4.0
        assert processed.progressed_at(6.0, waiting=True) == 6.0, "waiting for records is progress"
