"""A consumer without progress reports the reason in its health, as an event and in the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import (
    Consumer,
    ConsumerEvent,
    CoordinatorFound,
    CoordinatorLost,
    EventStream,
    LoopBlocked,
    PartitionResumed,
    PartitionStalled,
    Reason,
    Throttled,
)
from aiokwire.protocol import ApiKey, Request, Response
from aiokwire.protocol.messages import fetch
from aiokwire.types import TopicPartition
from aiokwire.watchdog import BlockedLoop
from tests.consumer.conftest import Peer
from tests.consumer.groups import QUICK, assigned, fill, member, until
from tests.consumer.test_huge_batches import Turns

T0 = TopicPartition("t", 0)
Event = TypeVar("Event")


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 1}) as broker:
        await fill(broker, 1)
        yield broker


def reader_of(servers: str, **options: Any) -> Consumer[bytes, bytes]:
    given = {**QUICK, "stalled_after_ms": 100, "fetch_max_wait_ms": 20, **options}
    return Consumer(partitions=[T0], bootstrap_servers=servers, **given)


async def first(stream: EventStream[ConsumerEvent], kind: type[Event]) -> Event:
    with anyio.fail_after(10):
        async for event in stream:
            if isinstance(event, kind):
                return event
    raise AssertionError(f"no {kind.__name__}")


def waits_for(reader: Consumer[Any, Any]) -> Reason:
    return reader.health().partitions[T0].reason


async def test_a_partition_without_a_leader_stalls_and_resumes_with_events(
    make_peer: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    peer: Peer
    async with make_peer() as peer:
        peer.log("t").leader = -1
        peer.log("t").append(b"a")
        async with reader_of(peer.bootstrap_servers) as reader:
            events = reader.events()
            stalled = await first(events, PartitionStalled)
            assert (stalled.partition, stalled.reason) == (T0, Reason.NO_LEADER)
            assert stalled.seconds >= 0.1
            health = reader.health()
            assert not health.ok
            assert [each.partition for each in health.stalled] == [T0]
            assert "waits for a leader" in caplog.text
            peer.log("t").leader = 0
            assert (await reader.getone(timeout=5)).value == b"a"
            assert (await first(events, PartitionResumed)).partition == T0
            assert reader.health().ok


async def test_a_partition_that_is_paused_or_not_read_does_not_stall(broker: Broker) -> None:
    async with reader_of(broker.bootstrap_servers) as reader:
        events = reader.events()
        await until(lambda: waits_for(reader) is Reason.NOT_READ)
        reader.pause(T0)
        assert waits_for(reader) is Reason.PAUSED
        reader.resume(T0)
        assert len(await reader.getmany(timeout=5)) == 10
        await until(lambda: waits_for(reader) is Reason.AT_END)
        assert await reader.getmany(timeout=0.5) == []
        health = reader.health()
        assert health.partitions[T0].idle >= 0.4
        assert health.ok
    assert [event async for event in events if isinstance(event, PartitionStalled)] == []


async def test_the_stall_event_names_a_broker_that_is_gone(broker: Broker) -> None:
    address = broker.bootstrap_servers
    async with reader_of(broker.bootstrap_servers) as reader:
        events = reader.events()
        assert len(await reader.getmany(timeout=5)) == 10
        await broker.close()
        stalled = await first(events, PartitionStalled)
        assert stalled.reason is Reason.UNREACHABLE
        assert address in stalled.detail


async def test_a_lost_and_a_found_coordinator_are_events() -> None:
    async with Broker(topics={"t": 1}, nodes=2) as broker, member(broker) as reader:
        await assigned(reader, 0)
        old = broker.faults.coordinator("g")
        events = reader.events()
        await broker.faults.stop_node(old)
        lost = await first(events, CoordinatorLost)
        assert (lost.group_id, lost.node_id) == ("g", old)
        found = await first(events, CoordinatorFound)
        assert found.node_id == broker.faults.coordinator("g") != old
        group = reader.health().group
        assert group is not None
        assert (group.coordinator, group.last_error) == (found.node_id, "")


async def test_throttling_by_a_broker_is_an_event(make_peer: Callable[..., Any]) -> None:
    peer: Peer
    async with make_peer() as peer:
        peer.log("t").append(b"a")

        async def throttle(request: Request, version: int) -> Response:
            assert isinstance(request, fetch.FetchRequest)
            response = peer.fetch_now(0, request, version)
            response.throttle_time_ms = 200
            return response

        peer.on[ApiKey.FETCH] = throttle
        async with reader_of(peer.bootstrap_servers) as reader:
            events = reader.events()
            assert (await reader.getone(timeout=5)).value == b"a"
            throttled = await first(events, Throttled)
            assert throttled.node_id == 0
            assert 0 < throttled.seconds < 0.21
            assert waits_for(reader) is Reason.THROTTLED


async def test_a_blocked_loop_is_an_event_and_in_the_health(broker: Broker) -> None:
    async with member(broker) as reader:
        events = reader.events()
        blocked = BlockedLoop(2.5, None, ())
        assert reader._rebalance_handler is not None
        reader._rebalance_handler.status.on_blocked(blocked)
        assert (await first(events, LoopBlocked)).blocked is blocked
        health = reader.health()
        assert health.blocked is blocked
        assert health.blocked_ago is not None
        assert health.blocked_ago >= 0
        assert (await first(events, CoordinatorFound)).group_id == "g"


async def test_ten_thousand_partitions_are_checked_in_short_turns() -> None:
    partitions = [TopicPartition("t", number) for number in range(10_000)]
    reader = Consumer(partitions=partitions, bootstrap_servers="127.0.0.1:1")
    with Turns() as turns:
        await reader._stall_monitor._check_all()
    assert turns.longest < 0.020
    assert len(reader.health().partitions) == 10_000
    await reader.assign(partitions[:10])
    await reader._stall_monitor._check_all()
    assert len(reader._stall_monitor._seen) == 10


async def test_partitions_that_stall_for_one_reason_are_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    partitions = [TopicPartition("t", number) for number in range(500)]
    reader = Consumer(partitions=partitions, bootstrap_servers="127.0.0.1:1", stalled_after_ms=1)

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if "no progress" in record.getMessage()]

    await reader._stall_monitor._check_all()
    await anyio.sleep(0.02)  # from here on all have stalled, not only those that were looked at first
    with anyio.fail_after(5):
        while not logged():
            await reader._stall_monitor._check_all()
    await reader._stall_monitor._check_all()
    lines = logged()
    assert len(lines) == 1
    assert "waits for a leader" in lines[0]
    assert lines[0].endswith("and 499 more partition(s)")
    assert lines[0].startswith("client 'aiokwire': no progress for ")


async def test_the_log_has_no_stalls_of_a_logged_outage_until_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    partitions = [TopicPartition("t", number) for number in range(3)]
    reader = Consumer(partitions=partitions, bootstrap_servers="127.0.0.1:1", stalled_after_ms=1)
    caplog.set_level("INFO", "aiokwire")

    async def check_until(done: Callable[[], bool]) -> None:
        with anyio.fail_after(5):
            while not done():
                await reader._stall_monitor._check_all()

    reader._stall_monitor._parts.client.nodes._outages[None] = 0.0  # type: ignore[index]  # the leader of these partitions is None
    events = reader.events()
    await check_until(lambda: len(reader.health().stalled) == 3)
    assert (await first(events, PartitionStalled)).partition == T0
    assert not caplog.messages
    reader._stall_monitor._parts.client.nodes._outages.clear()
    await check_until(lambda: bool(caplog.messages))
    assert len(caplog.messages) == 1
    for state in reader._stall_monitor._parts.subscription.states.values():
        state.paused = True
    await reader._stall_monitor._check_all()
    assert caplog.messages[1:] == ["client 'aiokwire': t[0] and 2 more partition(s) resumed"]
