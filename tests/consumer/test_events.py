"""Streams of events, with and without a consumer."""

from __future__ import annotations

import gc
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import (
    Consumer,
    ConsumerEvent,
    CoordinatorFound,
    PartitionEnd,
    PositionReset,
    RebalanceEnded,
    RebalanceStarted,
)
from aiokwire.consumer.events import WITHOUT_ENDS
from aiokwire.events import Events, EventStream, Throttled
from aiokwire.types import TopicPartition
from tests.consumer.groups import assigned, fill, member, until

T0 = TopicPartition("t", 0)


async def rest(stream: EventStream[ConsumerEvent]) -> list[ConsumerEvent]:
    """Return the remaining events of a stream that has ended."""
    with anyio.fail_after(5):
        return [event async for event in stream]


async def test_the_oldest_events_are_dropped_and_counted() -> None:
    events = Events[ConsumerEvent]()
    stream = events.listen(limit=2)
    for number in range(5):
        events.publish(Throttled(number, 1.0))
    events.close()
    assert await rest(stream) == [Throttled(3, 1.0), Throttled(4, 1.0)]
    assert stream.dropped == 3


async def test_only_streams_that_want_ends_receive_partition_ends() -> None:
    events = Events[ConsumerEvent]()
    without, with_ends = events.listen(limit=9, without=WITHOUT_ENDS), events.listen(limit=9)
    events.publish(PartitionEnd(T0, 4))
    events.close()
    assert await rest(without) == []
    assert await rest(with_ends) == [PartitionEnd(T0, 4)]


async def test_a_closed_or_deleted_stream_receives_no_events() -> None:
    events = Events[ConsumerEvent]()
    stream = events.listen(limit=9)
    assert events.wanted
    stream.close()
    events.publish(Throttled(1, 1.0))
    assert await rest(stream) == []
    del stream
    gc.collect()
    assert not events.wanted


async def test_a_listener_waits_for_the_next_event_and_ends_with_the_consumer() -> None:
    events = Events[ConsumerEvent]()
    stream = events.listen(limit=9)
    seen: list[ConsumerEvent] = []

    async def listen() -> None:
        async for event in stream:
            seen.append(event)  # noqa: PERF401 - `seen` is read before the stream ends

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        events.publish(Throttled(1, 1.0))
        await anyio.wait_all_tasks_blocked()
        assert seen == [Throttled(1, 1.0)]
        events.close()
    assert await rest(events.listen(limit=9)) == [], "no events after the end"


async def test_a_member_publishes_coordinator_rebalances_resets_and_ends() -> None:
    async with Broker(topics={"t": 1}) as broker:
        await fill(broker, 1)
        consumer = member(broker)
        stream = consumer.events(ends=True)
        async with consumer:
            assert len(await consumer.getmany(timeout=5)) == 10
            health = consumer.health()
            assert health.ok
            assert health.group is not None
            assert health.group.coordinator == 1
            assert health.group.generation == 1
            assert health.group.state == "STABLE"
            assert health.partitions[T0].position == 10
        events = await rest(stream)
        assert [type(event) for event in events if not isinstance(event, PartitionEnd)] == [
            RebalanceStarted,
            CoordinatorFound,
            RebalanceEnded,
            PositionReset,
        ]
        assert PositionReset(T0, None, 0, "earliest; the group has committed nothing") in events
        assert PartitionEnd(T0, 10) in events


async def test_a_new_stream_receives_an_end_that_was_reached_before() -> None:
    async with Broker(topics={"t": 1}) as broker:
        await fill(broker, 1)
        servers = broker.bootstrap_servers
        async with Consumer(partitions=[T0], bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            assert len(await consumer.getmany(timeout=5)) == 10
            stream = consumer.events(ends=True)
        assert await rest(stream) == [PartitionEnd(T0, 10)]
        assert not consumer.health().ok, "the consumer is closed"


@pytest.mark.parametrize("protocol", ["classic", "consumer", "auto"])
async def test_each_protocol_publishes_a_rebalance_caused_by_another_member(protocol: str) -> None:
    quick: dict[str, Any] = {"group_consumer_heartbeat_interval_ms": 20, "group_consumer_min_heartbeat_interval_ms": 20}
    async with Broker(topics={"t": 2}, **quick) as broker, member(broker, group_protocol=protocol) as first:
        await assigned(first, 0, 1)
        await until(lambda: state_of(first) == "STABLE")
        stream = first.events()
        async with member(broker, group_protocol=protocol) as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == 1)
            await until(lambda: state_of(first) == "STABLE")
        stream.close()
        rebalances = [event for event in await rest(stream) if isinstance(event, RebalanceStarted | RebalanceEnded)]
        ended = rebalances[1]
        assert isinstance(rebalances[0], RebalanceStarted)
        assert isinstance(ended, RebalanceEnded)
        assert ended.generation > 0
        group = first.health().group
        assert group is not None
        assert group.rebalance_took is not None
        assert group.heartbeat is not None


def state_of(reader: Consumer[bytes, bytes]) -> str | None:
    group = reader.health().group
    return None if group is None else group.state
