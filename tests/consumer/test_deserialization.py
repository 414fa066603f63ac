"""Async deserializers are awaited in every way to read; failures are handled by the policy."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, DeserializationError
from aiokwire.consumer.deserialization import CONCURRENCY
from aiokwire.errors import ConfigurationError, RequestTimedOut
from aiokwire.producer import Producer
from aiokwire.records import DeserializedRecord, Record
from aiokwire.types import TopicPartition
from tests.consumer.groups import QUICK

T0 = TopicPartition("t", 0)
COUNT = 600  # more than one part
BAD = (3, 4, 300, COUNT - 1)


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 1, "bad": 1}) as broker:
        async with Producer(broker.bootstrap_servers, linger_ms=100) as producer:
            for number in range(COUNT):
                await producer.submit("t", b"%d" % number, key=b"k%d" % number, partition=0)
                await producer.submit("bad", b"x" if number in BAD else b"%d" % number, partition=0)
        yield broker


def reader_of(broker: Broker, topic: str = "t", **options: Any) -> Consumer[Any, Any]:
    return Consumer(
        partitions=[TopicPartition(topic, 0)], bootstrap_servers=broker.bootstrap_servers, **{**QUICK, **options}
    )


class Slow:
    """An async deserializer with varying delays that counts its concurrent calls."""

    def __init__(self) -> None:
        self.running = self.most = 0
        self._random = random.Random(7)

    async def __call__(self, data: bytes) -> int:
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(self._random.randrange(3)):
            await anyio.lowlevel.checkpoint()
        self.running -= 1
        return int(data)


async def by_getone(reader: Consumer[Any, Any]) -> list[Any]:
    return [(await reader.getone(timeout=10)).value for _ in range(COUNT)]


async def by_getone_without_waiting(reader: Consumer[Any, Any]) -> list[Any]:
    got: list[Any] = []
    with anyio.fail_after(20):
        while len(got) < COUNT:
            try:
                got.append((await reader.getone(timeout=0)).value)
            except RequestTimedOut:
                await anyio.lowlevel.checkpoint()
    return got


async def by_getmany(reader: Consumer[Any, Any]) -> list[Any]:
    got: list[Any] = []
    while len(got) < COUNT:
        got += [record.value for record in await reader.getmany(timeout=10)]
    return got


async def by_loop(reader: Consumer[Any, Any]) -> list[Any]:
    got = []
    async for record in reader:
        got.append(record.value)
        if len(got) == COUNT:
            break
    return got


async def by_batches(reader: Consumer[Any, Any]) -> list[Any]:
    got: list[Any] = []
    async for batch in reader.batches():
        assert batch.to_arrow().column("value").to_pylist() == [str(value).encode() for value in batch.values()]
        got += [record.value for record in batch.records()]
        if len(got) == COUNT:
            break
    return got


async def by_streams(reader: Consumer[Any, Any]) -> list[Any]:
    (stream,) = reader.streams(1)
    got = []
    async for record in stream:
        got.append(record.value)
        if len(got) == COUNT:
            break
    return got


WAYS = [by_getone, by_getone_without_waiting, by_getmany, by_loop, by_batches, by_streams]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_an_async_deserializer_is_awaited_in_order_with_bounded_concurrency(
    broker: Broker, way: Callable[[Consumer[Any, Any]], Awaitable[list[Any]]]
) -> None:
    slow = Slow()
    async with reader_of(broker, value_deserializer=slow) as reader:
        with anyio.fail_after(30):
            assert await way(reader) == list(range(COUNT))
        assert await reader.position(T0) == COUNT
    assert 1 < slow.most <= CONCURRENCY
    assert slow.running == 0


async def test_an_async_key_deserializer_works_beside_a_plain_function(broker: Broker) -> None:
    async def text(data: bytes) -> str:
        return data.decode()

    async with reader_of(broker, key_deserializer=text, value_deserializer=json.loads) as reader:
        records = await reader.getmany(max_records=COUNT, timeout=10)
        assert [(record.key, record.value) for record in records] == [(f"k{i}", i) for i in range(len(records))]


async def test_a_plain_function_that_returns_a_coroutine_is_awaited_too(broker: Broker) -> None:
    slow = Slow()
    async with reader_of(broker, value_deserializer=lambda data: slow(bytes(data))) as reader:
        with anyio.fail_after(30):
            assert await by_getmany(reader) == list(range(COUNT))


async def test_columns_do_not_wait_for_deserializers(broker: Broker) -> None:
    async def never(data: bytes) -> None:
        raise AssertionError

    async with reader_of(broker, value_deserializer=never) as reader:
        got: list[Any] = []
        while len(got) < COUNT:
            got += (await reader.getarrow(timeout=10)).column("value").to_pylist()
        assert got == [b"%d" % number for number in range(COUNT)]


async def test_the_call_after_a_cancelled_one_reuses_its_deserialized_values(broker: Broker) -> None:
    calls: list[bytes] = []
    gate = anyio.Event()

    async def gated(data: bytes) -> int:
        calls.append(data)
        await gate.wait()
        return int(data)

    async with reader_of(broker, value_deserializer=gated) as reader:
        with anyio.fail_after(10):
            while len(calls) < CONCURRENCY:
                assert await reader.getmany(timeout=0) == []
        gate.set()
        assert await by_getmany(reader) == list(range(COUNT))
    assert len(calls) == len(set(calls)) == COUNT


async def test_close_ends_an_async_deserializer_that_hangs(broker: Broker) -> None:
    async def hangs(data: bytes) -> None:
        await anyio.sleep_forever()

    async with reader_of(broker, value_deserializer=hangs) as reader:
        with pytest.raises(RequestTimedOut):
            await reader.getone(timeout=0.05)


async def test_a_failure_of_an_async_deserializer_is_raised_after_the_records_before_it(broker: Broker) -> None:
    async def number(data: bytes) -> int:
        await anyio.lowlevel.checkpoint()
        return int(data)

    tp = TopicPartition("bad", 0)
    async with reader_of(broker, "bad", value_deserializer=number) as reader:
        assert [(await reader.getone(timeout=10)).value for _ in range(3)] == [0, 1, 2]
        for _ in range(2):  # raised again until a seek
            with pytest.raises(DeserializationError, match="invalid literal") as caught:
                await reader.getone(timeout=10)
            assert (caught.value.offset, caught.value.record.value) == (3, b"x")
        assert await reader.position(tp) == 3
        reader.seek(tp, 5)
        assert (await reader.getone(timeout=10)).value == 5


# --- the policy -------------------------------------------------------------------------------------------------------


async def number_later(data: bytes) -> int:
    return int(data)


@pytest.mark.parametrize("deserializer", [int, number_later], ids=["plain", "async"])
async def test_skipped_records_count_as_processed_and_are_logged_with_their_offset(
    broker: Broker, deserializer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"value_deserializer": deserializer, "on_deserialization_error": "skip"}
    with caplog.at_level(logging.WARNING, "aiokwire"):
        async with reader_of(broker, "bad", group_id="g", **options) as reader:
            got: list[Any] = []
            while len(got) < COUNT - len(BAD):
                got += [record.value for record in await reader.getmany(timeout=10)]
            assert got == [number for number in range(COUNT) if number not in BAD]
            assert await reader.getmany(timeout=0) == []
            assert await reader.position(TopicPartition("bad", 0)) == COUNT
            await reader.commit()
            committed = await reader.committed()
            assert [place and place.offset for place in committed.values()] == [COUNT]
    lines = [record.getMessage() for record in caplog.records if "skipped" in record.getMessage()]
    assert len(lines) <= 3
    assert lines[0].startswith("bad[0] at offset")
    assert "ValueError: invalid literal for int()" in lines[0]


@pytest.mark.parametrize("deserializer", [int, number_later], ids=["plain", "async"])
@pytest.mark.parametrize("is_async", [False, True], ids=["plain handler", "async handler"])
async def test_a_function_replaces_or_skips_records(broker: Broker, deserializer: Any, is_async: bool) -> None:
    seen: list[tuple[int, bytes | None]] = []

    def replace(record: Record, error: DeserializationError) -> DeserializedRecord[Any, Any] | None:
        assert isinstance(error.__cause__, ValueError)
        seen.append((record.offset, record.value))
        return DeserializedRecord(record, record.key, -record.offset) if record.offset % 2 else None

    async def replace_later(record: Record, error: DeserializationError) -> DeserializedRecord[Any, Any] | None:
        await anyio.lowlevel.checkpoint()
        return replace(record, error)

    handler = replace_later if is_async else replace
    async with reader_of(broker, "bad", value_deserializer=deserializer, on_deserialization_error=handler) as reader:
        got: list[Any] = []
        while len(got) < COUNT - 2:
            got += [record.value for record in await reader.getmany(timeout=10)]
    expected = [-n if n in BAD and n % 2 else n for n in range(COUNT) if n not in BAD or n % 2]
    assert got == expected
    assert sorted(seen) == [(number, b"x") for number in BAD]


@pytest.mark.parametrize("deserializer", [int, number_later], ids=["plain", "async"])
async def test_a_function_that_fails_or_returns_something_else_is_reported(broker: Broker, deserializer: Any) -> None:
    def fails(record: Record, error: DeserializationError) -> None:
        raise KeyError("no dead letters")

    def strange(record: Record, error: DeserializationError) -> Any:
        return 7

    for handler, message in ((fails, "raised KeyError"), (strange, "returned int, not a record or None")):
        async with reader_of(
            broker, "bad", value_deserializer=deserializer, on_deserialization_error=handler
        ) as reader:
            assert [(await reader.getone(timeout=10)).value for _ in range(3)] == [0, 1, 2]
            with pytest.raises(DeserializationError, match=f"bad.0. at offset 3.*{message}"):
                await reader.getone(timeout=10)


async def test_the_records_of_a_batch_are_skipped_too(broker: Broker) -> None:
    async with reader_of(broker, "bad", value_deserializer=int, on_deserialization_error="skip") as reader:
        got: list[Any] = []
        async for batch in reader.batches():
            got += batch.values()
            if batch.next_offset == COUNT:
                break
        assert got == [number for number in range(COUNT) if number not in BAD]


@pytest.mark.parametrize("wrong", ["ignore", 3, b"skip"])
def test_an_unknown_policy_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="on_deserialization_error must be 'raise', 'skip' or a function"):
        Consumer("t", bootstrap_servers="localhost", on_deserialization_error=wrong)
