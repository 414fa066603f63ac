"""Heartbeats reach the coordinator while the user's loop is blocked; only outcomes of the current
term are reported."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import anyio.abc
import pytest

from aiokwire.broker import Broker
from aiokwire.cluster import Client, ClientConfig
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.group.heartbeat_thread import FIRST_EAGER_INTERVAL, HeartbeatSchedule, HeartbeatThread
from aiokwire.net import Address, ApiVersions
from aiokwire.protocol import ApiKey, Request, Response
from aiokwire.protocol.messages import consumer_group_heartbeat, heartbeat
from aiokwire.watchdog import BlockedLoop
from tests.broker.grouped import ConsumerProtocolMember, RawMember, close, rebalance, started
from tests.group.aside import broker_aside

SESSION_MS = 800
TIMEOUT = 10.0


class Answers:
    """The outcomes that a thread reports."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[HeartbeatSchedule, Response | KafkaError]] = []
        self._received = anyio.Event()

    def __call__(self, beat: HeartbeatSchedule, outcome: Response | KafkaError) -> None:
        self.outcomes.append((beat, outcome))
        self._received.set()
        self._received = anyio.Event()

    @property
    def codes(self) -> list[int]:
        return [getattr(outcome, "error_code", -99) for _, outcome in self.outcomes]

    async def until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(TIMEOUT):
            while not condition():
                await self._received.wait()

    async def more(self, count: int) -> None:
        wanted = len(self.outcomes) + count
        await self.until(lambda: len(self.outcomes) >= wanted)


@contextlib.asynccontextmanager
async def heartbeating(
    broker: Broker, *, on_blocked: Callable[[BlockedLoop], None] | None = None, **options: Any
) -> AsyncIterator[tuple[HeartbeatThread, Answers]]:
    """Run a heartbeat thread, with its outcomes."""
    answers = Answers()
    async with Client(ClientConfig(bootstrap_servers=broker.bootstrap_servers, **options)) as client:
        thread = HeartbeatThread(client, answers, on_blocked=on_blocked)
        client.spawn(thread.run)
        yield thread, answers


def classic(broker: Broker, member: RawMember, **options: Any) -> HeartbeatSchedule:
    """Return the schedule for a member's current generation."""
    request = heartbeat.HeartbeatRequest(
        group_id=member.group, generation_id=member.generation, member_id=member.member_id
    )

    def build(versions: ApiVersions, _last: Response | None) -> tuple[Request[Any], int]:
        return request, versions.pick(heartbeat.HeartbeatRequest)

    times = {"interval": 0.05, "timeout": 5.0, "max_poll_interval": 60.0} | options
    return HeartbeatSchedule(node_id=1, address=Address("127.0.0.1", broker.port), build=build, **times)


def block(seconds: float) -> None:
    """Block the loop, as a handler must not."""
    time.sleep(seconds)


def heartbeats(broker: Broker) -> int:
    return sum(entry.api in {ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT} for entry in broker.journal)


async def joined(broker: Broker, group: str = "g") -> RawMember:
    member = await RawMember.connect(broker, group)
    member.send_join(session_ms=SESSION_MS)
    assert await member.take_join() is ErrorCode.MEMBER_ID_REQUIRED
    member.send_join(session_ms=SESSION_MS)
    assert await member.take_join() is ErrorCode.NONE
    member.send_sync({member.member_id: b""})
    assert await member.take_sync() == (ErrorCode.NONE, b"")
    return member


async def test_heartbeats_continue_while_the_loop_is_blocked_and_the_blocking_line_is_reported() -> None:
    blocks: list[BlockedLoop] = []
    with broker_aside(journal=1000, group_min_session_timeout_ms=100) as broker:
        async with heartbeating(broker, on_blocked=blocks.append) as (thread, answers):
            without_heartbeats = await joined(broker, "other")
            member = await joined(broker)
            thread.start(classic(broker, member))
            await answers.more(1)
            before = heartbeats(broker)
            block(2.4)
            sent = heartbeats(broker) - before
            assert broker.faults.group("other").members == {}, "its session ended during the block"
            status = broker.faults.group("g")
            assert (status.state, list(status.members)) == ("Stable", [member.member_id])
            assert status.generation == member.generation
            assert sent >= 10, "at an interval of 50 ms"
            await answers.until(lambda: blocks)
            assert blocks[0].where is not None
            assert blocks[0].where.function == "block"
            await answers.more(1)
            assert set(answers.codes) == {0}
        await close(member, without_heartbeats)


async def test_heartbeats_stop_without_progress_of_the_application_and_resume_with_it() -> None:
    with broker_aside(journal=1000, group_min_session_timeout_ms=100) as broker:
        async with heartbeating(broker) as (thread, answers):
            member = await joined(broker)
            thread.start(classic(broker, member, max_poll_interval=0.3))
            block(0.3 + 2 * SESSION_MS / 1000)
            assert broker.faults.group("g").members == {}
            before = heartbeats(broker)
            thread.record_poll()
            await answers.until(lambda: ErrorCode.UNKNOWN_MEMBER_ID in answers.codes)
            assert heartbeats(broker) > before
        await close(member)


async def test_heartbeats_continue_with_progress() -> None:
    async with Broker(journal=1000) as broker, heartbeating(broker) as (thread, answers):
        member = await joined_slowly(broker)
        thread.start(classic(broker, member, interval=0.02, max_poll_interval=0.1))
        for _ in range(20):
            await answers.more(1)
            thread.record_poll()
        assert set(answers.codes) == {0}
        await close(member)


async def joined_slowly(broker: Broker) -> RawMember:
    """Join a member with a session that is longer than any test."""
    (member,) = await started(broker, 1)
    return member


async def test_an_eager_term_begins_with_heartbeats_at_growing_intervals() -> None:
    async with Broker(journal=1000) as broker, heartbeating(broker) as (thread, answers):
        member = await joined_slowly(broker)
        thread.start(classic(broker, member, interval=60.0, eager=True))
        began = anyio.current_time()
        times = []
        for _ in range(3):
            await answers.more(1)
            times.append(anyio.current_time() - began)
        assert times[0] >= FIRST_EAGER_INTERVAL
        assert times[2] >= 4 * FIRST_EAGER_INTERVAL
        thread.stop()
        await close(member)


async def test_a_response_to_an_older_generation_is_dropped() -> None:
    async with Broker(journal=1000) as broker, heartbeating(broker) as (thread, answers):
        member = await joined_slowly(broker)
        held = broker.faults.on(heartbeat.HeartbeatRequest).hold(handled=True)
        old = classic(broker, member)
        thread.start(old, now=True)
        await held.arrived()
        await rebalance(member)
        new = classic(broker, member)
        thread.start(new)
        held.release()
        await answers.more(2)
        assert {beat for beat, _ in answers.outcomes} == {new}
        assert set(answers.codes) == {0}
        await close(member)


async def test_an_update_keeps_the_response_in_flight_and_replaces_the_next_heartbeat() -> None:
    async with Broker(journal=1000) as broker, heartbeating(broker) as (thread, answers):
        member = await joined_slowly(broker)
        held = broker.faults.on(heartbeat.HeartbeatRequest).hold()
        first, second = classic(broker, member, interval=30.0), classic(broker, member, interval=30.0)
        thread.start(first, now=True)
        await held.arrived()
        thread.update(second, now=True)
        held.release()
        await answers.more(2)
        assert [beat for beat, _ in answers.outcomes] == [first, second]
        await close(member)


async def test_nothing_is_sent_or_reported_after_stop() -> None:
    async with Broker(journal=1000) as broker, heartbeating(broker) as (thread, answers):
        member = await joined_slowly(broker)
        thread.start(classic(broker, member, interval=0.01))
        await answers.more(3)
        thread.stop()
        count = len(answers.outcomes)
        for _ in range(5):
            assert await member.beat() is ErrorCode.NONE
        at_rest = heartbeats(broker)
        with anyio.move_on_after(0.1):
            await anyio.sleep_forever()
        assert len(answers.outcomes) == count
        assert heartbeats(broker) == at_rest
        await close(member)


async def test_a_lost_connection_is_reported_and_replaced() -> None:
    async with Broker(journal=1000) as broker, heartbeating(broker, retry_backoff_ms=10) as (thread, answers):
        member = await joined_slowly(broker)
        broker.faults.on(heartbeat.HeartbeatRequest, times=2).close()
        thread.start(classic(broker, member), now=True)
        await answers.more(4)
        kinds = [type(outcome) for _, outcome in answers.outcomes[:4]]
        assert kinds == [ConnectionFailed, ConnectionFailed, heartbeat.HeartbeatResponse, heartbeat.HeartbeatResponse]
        await close(member)


async def test_a_coordinator_that_does_not_respond_gets_a_new_connection() -> None:
    async with Broker(journal=1000) as broker, heartbeating(broker, retry_backoff_ms=10) as (thread, answers):
        member = await joined_slowly(broker)
        broker.faults.on(heartbeat.HeartbeatRequest, times=1).drop()
        thread.start(classic(broker, member, timeout=0.2), now=True)
        await answers.more(2)
        assert isinstance(answers.outcomes[0][1], RequestTimedOut)
        assert answers.codes[1] == 0
        connections = {entry.connection for entry in broker.journal if entry.api is ApiKey.HEARTBEAT}
        assert len(connections) == 2
        await close(member)


async def test_heartbeats_follow_the_coordinator() -> None:
    async with Broker(journal=1000, nodes=2) as broker, heartbeating(broker) as (thread, answers):
        home = broker.faults.coordinator("g")
        member = await RawMember.connect(broker, node=home)
        await member.get_id()
        await rebalance(member)

        def at(node: int) -> HeartbeatSchedule:
            beat = classic(broker, member)
            host, _, port = broker.address(node).rpartition(":")
            return HeartbeatSchedule(
                node_id=node,
                address=Address(host, int(port)),
                build=beat.build,
                interval=0.05,
                timeout=5,
                max_poll_interval=60,
            )

        thread.start(at(home))
        await answers.more(1)
        other = next(node for node in broker.nodes if node != home)
        broker.faults.move_coordinator("g", other)
        await answers.until(lambda: ErrorCode.NOT_COORDINATOR in answers.codes)
        thread.start(at(other))
        await answers.until(lambda: answers.codes[-1] == 0)
        await close(member)


async def test_another_address_is_used_at_once_while_the_old_one_does_not_respond() -> None:
    async with Broker(journal=1000, nodes=2) as broker, heartbeating(broker) as (thread, answers):
        home = broker.faults.coordinator("g")
        member = await RawMember.connect(broker, node=home)
        await member.get_id()
        await rebalance(member)
        silent = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with silent:
            silent_port = silent.extra(anyio.abc.SocketAttribute.local_port)
            beat = classic(broker, member)
            thread.start(dataclasses.replace(beat, address=Address("127.0.0.1", silent_port), timeout=60), now=True)
            there = Address("127.0.0.1", int(broker.address(home).rpartition(":")[2]))
            thread.update(dataclasses.replace(beat, node_id=home, address=there), now=True)
            await answers.more(1)
            assert answers.codes == [0]
        await close(member)


async def test_the_thread_runs_from_the_first_heartbeat_until_the_client_is_closed() -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if "heartbeats" in thread.name]

    async with Broker() as broker:
        async with heartbeating(broker, client_id="billing") as (thread, answers):
            assert threads() == []
            member = await joined_slowly(broker)
            thread.start(classic(broker, member))
            await answers.more(1)
            assert threads() == ["aiokwire heartbeats of billing"]
        assert threads() == []
        await close(member)


async def test_an_epoch_received_while_the_loop_was_blocked_is_in_the_next_heartbeat() -> None:
    configs = {
        "group_consumer_min_session_timeout_ms": 100,
        "group_consumer_session_timeout_ms": SESSION_MS,
        "group_consumer_min_heartbeat_interval_ms": 10,
        "group_consumer_heartbeat_interval_ms": 50,
        "group_consumer_assignment_interval_ms": 0,
    }
    with broker_aside(journal=1000, topics={"t": 2}, **configs) as broker:
        async with heartbeating(broker) as (thread, answers):
            ours = ConsumerProtocolMember(broker, (await RawMember.connect(broker)).client, "ours")
            assert await ours.beat(join=True) is ErrorCode.NONE

            def build(versions: ApiVersions, last: Response | None) -> tuple[Request[Any], int]:
                epoch = (
                    last.member_epoch
                    if isinstance(last, consumer_group_heartbeat.ConsumerGroupHeartbeatResponse)
                    else ours.epoch
                )
                request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                    group_id="g", member_id="ours", member_epoch=epoch
                )
                return request, versions.pick(consumer_group_heartbeat.ConsumerGroupHeartbeatRequest)

            address = Address("127.0.0.1", broker.port)
            thread.start(
                HeartbeatSchedule(
                    node_id=1, address=address, build=build, interval=0.05, timeout=5, max_poll_interval=60
                )
            )
            await answers.more(1)
            epoch = broker.faults.group("g").generation
            other = ConsumerProtocolMember(broker, (await RawMember.connect(broker)).client, "other")
            assert await other.beat(join=True) is ErrorCode.NONE
            assert await other.leave() is ErrorCode.NONE
            block(3 * SESSION_MS / 1000)
            assert list(broker.faults.group("g").members) == ["ours"]
            assert broker.faults.group("g").generation > epoch
            await answers.more(1)
            assert set(answers.codes) == {0}
        await close(ours, other)


ABANDON = """
import asyncio, sys, threading
import anyio
from aiokwire.cluster import Client, ClientConfig
from aiokwire.group.heartbeat_thread import FIRST_EAGER_INTERVAL, HeartbeatSchedule, HeartbeatThread
from aiokwire.net import Address
from aiokwire.protocol.messages.heartbeat import HeartbeatRequest

address = Address("127.0.0.1", int(sys.argv[1]))

async def begin():
    answered = anyio.Event()
    client = Client(ClientConfig(bootstrap_servers=str(address)))
    await client.start()
    thread = HeartbeatThread(client, lambda beat, outcome: answered.set())
    client.spawn(thread.run)
    build = lambda versions, last: (HeartbeatRequest(group_id="g"), versions.pick(HeartbeatRequest))
    schedule = HeartbeatSchedule(
        node_id=1, address=address, build=build, interval=0.05, timeout=5, max_poll_interval=60
    )
    thread.start(schedule, now=True)
    await answered.wait()

loop = asyncio.new_event_loop()
loop.run_until_complete(begin())
(thread,) = [thread for thread in threading.enumerate() if "heartbeats" in thread.name]
if sys.argv[2] == "close the loop":
    loop.close()
    thread.join(10)
print("alive" if thread.is_alive() else "ended", flush=True)
"""


@pytest.mark.parametrize(("how", "thread"), [("close the loop", "ended"), ("exit", "alive")])
def test_a_program_that_closes_nothing_still_ends(how: str, thread: str) -> None:
    with broker_aside() as broker:
        command = [sys.executable, "-c", ABANDON, str(broker.port), how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False)
    assert (done.returncode, done.stdout) == (0, f"{thread}\n"), done.stderr
