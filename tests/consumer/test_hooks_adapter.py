"""The hooks of a consumer receive resets, with old and new position, and partition ends."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from aiokwire.admin import Admin
from aiokwire.broker import Broker
from aiokwire.clock import wall_ms
from aiokwire.consumer import Consumer
from aiokwire.hooks import Hooks
from aiokwire.producer import Producer
from aiokwire.types import TopicPartition

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)


class RecordingHooks(Hooks):
    def __init__(self) -> None:
        self.resets: list[tuple[int, int | None, int]] = []
        self.ends: list[tuple[int, int]] = []
        self.reasons: list[str] = []

    def on_reset(self, topic: str, partition: int, before: int | None, after: int, reason: str) -> None:
        self.resets.append((partition, before, after))
        self.reasons.append(reason)

    def on_partition_end(self, topic: str, partition: int, offset: int) -> None:
        self.ends.append((partition, offset))


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2}) as broker:
        yield broker


def consumer(broker: Broker, hooks: RecordingHooks, **options: Any) -> Consumer[bytes, bytes]:
    settings = {"auto_offset_reset": "earliest", "partitions": [T0], "fetch_max_wait_ms": 20, **options}
    return Consumer(bootstrap_servers=broker.bootstrap_servers, hooks=hooks, **settings)


async def fill(broker: Broker, count: int, *, partition: int = 0, at: int | None = None) -> None:
    async with Producer(broker.bootstrap_servers) as producer:
        for number in range(count):
            await producer.submit("t", b"%d" % number, partition=partition, timestamp=at)
        await producer.flush()


def delete_before(broker: Broker, offset: int) -> None:
    log = broker.state.topics.require("t").partitions[0].log
    log.delete_records(offset)


async def read(reader: Consumer[bytes, bytes], count: int) -> list[int]:
    seen: list[int] = []
    with anyio.fail_after(5):
        while len(seen) < count:
            seen += [record.offset for record in await reader.getmany()]
    return seen


@pytest.mark.parametrize(("position", "first"), [(1000, 9), (0, 4)])
async def test_nearest_resets_to_the_closer_end(broker: Broker, position: int, first: int) -> None:
    await fill(broker, 9)
    delete_before(broker, 4)
    hooks = RecordingHooks()
    async with consumer(broker, hooks, auto_offset_reset="nearest") as reader:
        assert await reader.position(T0) == 4, "without a position, nearest is the start"
        reader.seek(T0, position)
        with anyio.fail_after(5):
            while len(hooks.resets) < 2:
                await reader.getmany(timeout=0.02)
        await fill(broker, 1)
        reader.seek(T0, hooks.resets[1][2])
        assert (await read(reader, 1))[0] == first
    assert hooks.resets == [(0, None, 4), (0, position, first)]
    assert "out of range" in hooks.reasons[1]


@pytest.mark.parametrize("policy", ["by_duration:PT1H", datetime.timedelta(hours=1)])
async def test_by_duration_starts_at_that_age(broker: Broker, policy: object) -> None:
    await fill(broker, 3, at=wall_ms() - 7_200_000)
    await fill(broker, 2, at=wall_ms() - 60_000)
    hooks = RecordingHooks()
    async with consumer(broker, hooks, auto_offset_reset=policy) as reader:
        assert await read(reader, 2) == [3, 4]
    assert hooks.resets == [(0, None, 3)]


async def test_by_duration_without_a_later_record_starts_at_the_end(broker: Broker) -> None:
    await fill(broker, 3, at=wall_ms() - 7_200_000)
    hooks = RecordingHooks()
    async with consumer(broker, hooks, auto_offset_reset="by_duration:PT1H") as reader:
        assert await reader.position(T0) == 3
    assert hooks.resets == [(0, None, 3)]
    assert "by_duration:PT1H" in hooks.reasons[0]


async def test_a_recreated_topic_causes_a_reset_from_the_old_position(broker: Broker) -> None:
    await fill(broker, 5)
    hooks = RecordingHooks()
    async with consumer(broker, hooks, metadata_max_age_ms=20) as reader:
        await read(reader, 5)
        async with Admin(broker.bootstrap_servers) as admin:
            (await admin.delete_topics(["t"])).check()
        await broker.create_topic("t", 2)
        await fill(broker, 2)
        assert await read(reader, 2) == [0, 1]
    assert hooks.resets == [(0, None, 0), (0, 5, 0)]


# --- ends -------------------------------------------------------------------------------------------------------------


async def test_an_end_is_reported_once_with_its_last_record_and_again_after_more_records(
    broker: Broker,
) -> None:
    await fill(broker, 5)
    hooks = RecordingHooks()
    async with consumer(broker, hooks) as reader:
        assert await read(reader, 5) == [0, 1, 2, 3, 4]
        assert hooks.ends == [(0, 5)]
        assert await reader.getmany(timeout=0.1) == []
        assert hooks.ends == [(0, 5)], "idle fetches report no end"
        await fill(broker, 2)
        assert await read(reader, 2) == [5, 6]
        assert hooks.ends[0] == (0, 5)
        assert hooks.ends[-1] == (0, 7)
        reader.seek(T0, 3)
        assert await read(reader, 4) == [3, 4, 5, 6]
        assert hooks.ends[-2:] == [(0, 7), (0, 7)]


async def test_a_loop_reports_the_end_after_its_last_record(broker: Broker) -> None:
    await fill(broker, 3)
    hooks = RecordingHooks()
    async with consumer(broker, hooks) as reader:
        seen = 0
        async for record in reader:
            seen += 1
            assert hooks.ends == []
            if record.offset == 2:
                break
        assert await reader.getmany(timeout=0.05) == []
        assert hooks.ends == [(0, 3)]


async def test_an_empty_partition_is_at_its_end_at_once(broker: Broker) -> None:
    await fill(broker, 3)
    hooks = RecordingHooks()
    async with consumer(broker, hooks, partitions=[T0, T1]) as reader:
        await read(reader, 3)
        with anyio.fail_after(5):
            while len(hooks.ends) < 2:
                await reader.getmany(timeout=0.01)
    assert sorted(hooks.ends) == [(0, 3), (1, 0)]


async def test_the_end_of_a_read_committed_consumer_is_after_the_markers(broker: Broker) -> None:
    hooks = RecordingHooks()
    async with Producer(broker.bootstrap_servers, transactional_id="x") as producer:
        async with producer.transaction():
            await producer.send("t", b"a", partition=0)
        try:
            async with producer.transaction():
                await producer.send("t", b"b", partition=0)
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
    async with consumer(broker, hooks) as reader:
        assert await read(reader, 1) == [0]
        with anyio.fail_after(5):
            while not hooks.ends:
                await reader.getmany(timeout=0.01)
        assert hooks.ends == [(0, 4)]
        assert reader.lag(T0) == 0


async def test_a_hook_that_raises_is_logged_and_reading_continues(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(RecordingHooks):
        def on_partition_end(self, topic: str, partition: int, offset: int) -> None:
            raise ValueError("mine")

    await fill(broker, 3)
    async with consumer(broker, Broken()) as reader:
        assert await read(reader, 3) == [0, 1, 2]
    assert "on_partition_end" in caplog.text
