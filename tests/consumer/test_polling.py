"""Reading with `timeout=0` returns buffered records at once and keeps work in progress."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.consumer.decoder import THREAD_FROM_BYTES
from aiokwire.errors import InvalidArgument, RequestTimedOut
from aiokwire.producer import Producer
from aiokwire.types import TopicPartition
from tests.consumer.groups import QUICK

T0 = TopicPartition("t", 0)
COUNT = 3000
# Barely compressible: batches stay large enough to be decompressed in a thread.
VALUES = [random.Random(number).randbytes(100) for number in range(COUNT)]


@pytest.fixture(params=["none", "zstd"])
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[Broker]:
    options = {"compression_type": request.param, "batch_size": 200_000, "linger_ms": 200}
    async with Broker(topics={"t": 1}) as broker:
        async with Producer(broker.bootstrap_servers, **options) as producer:
            for value in VALUES:
                await producer.submit("t", value, partition=0)
            await producer.flush()
        yield broker


def reader_of(broker: Broker, **options: Any) -> Consumer[Any, Any]:
    return Consumer(partitions=[T0], bootstrap_servers=broker.bootstrap_servers, **{**QUICK, **options})


async def test_getone_with_timeout_0_returns_every_record(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        got: list[Any] = []
        with anyio.fail_after(20):
            while len(got) < COUNT:
                try:
                    got.append((await reader.getone(timeout=0)).value)
                except RequestTimedOut:
                    await anyio.lowlevel.checkpoint()
        assert got == VALUES


async def test_getmany_with_timeout_0_returns_every_record(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        got: list[Any] = []
        with anyio.fail_after(20):
            while len(got) < COUNT:
                got += [record.value for record in await reader.getmany(timeout=0)]
        assert got == VALUES


async def test_getarrow_with_timeout_0_returns_every_record(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        got: list[Any] = []
        with anyio.fail_after(20):
            while len(got) < COUNT:
                got += (await reader.getarrow(timeout=0)).column("value").to_pylist()
        assert got == VALUES


async def test_a_buffered_record_is_returned_by_getone_with_timeout_0_after_a_burst(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        await reader.getone(timeout=5)
        for number in range(1, 1500):  # beyond the point where the feed yields to the loop
            if number < 1000 or reader.positions()[T0] is not None:
                try:
                    record = await reader.getone(timeout=0)
                except RequestTimedOut:
                    record = await reader.getone(timeout=5)  # the next batch was not ready
                assert record.offset == number


async def test_batches_are_decompressed_ahead_of_the_reader(broker: Broker) -> None:
    async with reader_of(broker) as reader:
        await reader.getone(timeout=5)
        chunks = next(iter(reader._subscription.states.values())).chunks
        with anyio.fail_after(10):
            while any(chunk.batch.needs_decompression and chunk.size >= THREAD_FROM_BYTES for chunk in chunks):
                await anyio.lowlevel.checkpoint()


async def test_work_ahead_of_the_reader_stays_within_fetch_memory(broker: Broker) -> None:
    async with reader_of(broker, fetch_memory=100_000) as reader:
        got: list[Any] = []
        with anyio.fail_after(20):
            while len(got) < COUNT:
                got += await reader.getmany(timeout=0)
                assert reader.memory_in_use < 1_500_000  # one decompressed batch with its records
        assert [record.value for record in got] == VALUES
    assert reader.memory_in_use == 0


@pytest.mark.parametrize("timeout", ["1", -1, True, float("nan")])
async def test_a_wait_refuses_a_timeout_that_is_not_a_number_of_seconds(timeout: Any) -> None:
    async with Broker(topics={"t": 1}) as broker, Consumer("t", bootstrap_servers=broker.bootstrap_servers) as reader:
        for call in (reader.getone, reader.getmany):
            with pytest.raises(InvalidArgument, match="timeout must be None or a number of seconds"):
                await call(timeout=timeout)


async def test_the_partitions_of_an_invalid_topic_name_are_refused_at_once() -> None:
    async with Broker(topics={"t": 1}) as broker, Consumer("t", bootstrap_servers=broker.bootstrap_servers) as reader:
        with pytest.raises(InvalidArgument, match="'a b' is not a topic name"):
            await reader.partitions_for_topic("a b")
        with pytest.raises(InvalidArgument, match="'a b' is not a topic name"):
            await reader.subscribe("a b")


async def test_ack_refuses_other_objects_than_records() -> None:
    async with Broker(topics={"t": 1}) as broker:
        given: Any = {"bootstrap_servers": broker.bootstrap_servers, "group_id": "g"}
        async with Consumer("t", **given) as reader:
            with pytest.raises(InvalidArgument, match="ack takes a record, not None"):
                reader.ack(None)  # type: ignore[arg-type]
