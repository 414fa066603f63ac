"""Records as Arrow record batches, converted directly from fetched batches."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pyarrow as pa
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.consumer.decoder import THREAD_FROM_BYTES
from aiokwire.errors import ClosedError, ConfigurationError, InvalidArgument
from aiokwire.producer import Producer
from aiokwire.types import TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2}) as broker:
        yield broker


async def fill(broker: Broker, *values: bytes, partition: int = 0, **options: Any) -> None:
    """Produce one batch."""
    async with Producer(broker.bootstrap_servers, linger_ms=50, **options) as producer:
        for index, value in enumerate(values):
            await producer.submit(
                "t", value, key=b"k%d" % index, headers=[("h", value[:1])], partition=partition, timestamp=1000 + index
            )
        await producer.flush()


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, start + count)]


def reader_of(broker: Broker, *partitions: TopicPartition, **options: Any) -> Consumer[bytes, bytes]:
    return Consumer(
        partitions=partitions, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", **options
    )


def offsets(found: pa.RecordBatch) -> list[int]:
    column: Any = found.column("offset")
    numbers: list[int] = column.to_pylist()
    return numbers


async def test_getarrow_returns_the_records_of_getmany(broker: Broker) -> None:
    for partition in (0, 1):
        for start in (0, 40):
            await fill(broker, *numbers(40, start), partition=partition)
    async with reader_of(broker, T0, T1) as one, reader_of(broker, T0, T1) as other:
        rows: list[dict[str, Any]] = []
        while len(rows) < 160:
            found = await one.getarrow(timeout=5)
            found.validate(full=True)
            rows += found.to_pylist()
        records: list[Any] = []
        while len(records) < 160:
            records += await other.getmany(timeout=5)
        key = ["topic", "partition", "offset", "key", "value"]
        by_place = sorted([row[name] for name in key] for row in rows)
        assert by_place == sorted([getattr(record, name) for name in key] for record in records)
        assert rows[0]["headers"] == [{"name": "h", "value": b"0"}]
        assert [await one.position(tp) for tp in (T0, T1)] == [80, 80]


async def test_getarrow_takes_whole_batches_up_to_the_limit_or_one_larger_batch(broker: Broker) -> None:
    for _ in range(4):
        await fill(broker, *numbers(10))
    async with reader_of(broker, T0) as reader:
        await reader.getone()
        reader.seek(T0, 0)
        await reader.getone()
        assert offsets(await reader.getarrow(5)) == list(range(1, 10)), "the rest of a batch"
        assert offsets(await reader.getarrow(29)) == list(range(10, 30))
        assert offsets(await reader.getarrow(29)) == list(range(30, 40))


async def test_getarrow_shares_the_position_with_other_ways_to_read(broker: Broker) -> None:
    for start in (0, 20, 40):
        await fill(broker, *numbers(20, start))
    async with reader_of(broker, T0) as reader:
        seen = []
        async for record in reader:
            seen.append(record.offset)
            if len(seen) == 7:
                break
        seen += offsets(await reader.getarrow(1))
        seen += [record.offset for record in await reader.getmany(5)]
        seen += offsets(await reader.getarrow())
        assert seen == list(range(60))


@pytest.mark.parametrize("codec", ["gzip", "lz4"])
async def test_compressed_batches_large_and_small_are_read(broker: Broker, codec: str) -> None:
    large = [bytes([number % 7]) * (THREAD_FROM_BYTES // 8) + b"%d" % number for number in range(64)]
    await fill(broker, *large, compression_type=codec)
    await fill(broker, b"small", compression_type=codec)
    async with reader_of(broker, T0) as reader:
        seen: list[Any] = []
        while len(seen) < 65:
            seen += (await reader.getarrow(timeout=5)).column("value").to_pylist()
        assert seen == [*large, b"small"]


async def test_the_result_is_bounded_by_the_decompressed_size_of_the_records(broker: Broker) -> None:
    large = bytes(900_000)
    for _ in range(14):
        await fill(broker, large, compression_type="gzip")
    async with reader_of(broker, T0) as reader:
        await reader.getone()
        reader.seek(T0, 0)
        await reader.getone()
        left = 13
        while left:
            found = await reader.getarrow(timeout=5)
            assert found.get_total_buffer_size() < 10 * 1024 * 1024, "8 MiB and a batch"
            left -= found.num_rows


async def test_a_timeout_returns_an_empty_batch_and_a_cancelled_call_takes_no_records(broker: Broker) -> None:
    async with reader_of(broker, T0) as reader:
        empty = await reader.getarrow(timeout=0.01)
        assert (empty.num_rows, empty.schema.names[0]) == (0, "topic")
        with anyio.move_on_after(0.01) as scope:
            await reader.getarrow()
        assert scope.cancelled_caught
        await fill(broker, *numbers(3))
        assert offsets(await reader.getarrow(timeout=5)) == [0, 1, 2]


async def test_only_the_given_partitions_are_read(broker: Broker) -> None:
    await fill(broker, *numbers(3))
    await fill(broker, *numbers(3, 3), partition=1)
    async with reader_of(broker, T0, T1) as reader:
        found = await reader.getarrow(timeout=5, partitions=[T1])
        assert found.column("partition").to_pylist() == [1, 1, 1]
        assert await reader.position(T0) == 0


async def test_returned_records_are_processed_when_the_next_call_is_made(broker: Broker) -> None:
    await fill(broker, *numbers(3))
    async with reader_of(broker, T0, group_id="g") as reader:
        assert (await reader.getarrow(timeout=5)).num_rows == 3
        state = reader._subscription.states[T0]
        places = [reader._reader.processed.finished(state)]
        await reader.getarrow(timeout=0.01)
        places.append(reader._reader.processed.finished(state))
        assert [place and place.offset for place in places] == [0, 3]


async def test_wrong_arguments_and_a_closed_consumer_raise(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(broker, *numbers(3))
    async with reader_of(broker, T0) as reader:
        with pytest.raises(InvalidArgument, match="at least 1, not 0"):
            await reader.getarrow(0)
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "pyarrow", None)
            with pytest.raises(ConfigurationError, match=r"install aiokwire\[arrow\]"):
                await reader.getarrow()
        assert offsets(await reader.getarrow(timeout=5)) == [0, 1, 2], "the failed call took no records"
    with pytest.raises(ClosedError):
        await reader.getarrow()
