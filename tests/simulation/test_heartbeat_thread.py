"""Heartbeats on simulated time: at their interval, through outages, up to the poll interval."""

from __future__ import annotations

import itertools
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from aiokwire.cluster import Client, ClientConfig
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import KafkaError
from aiokwire.group.heartbeat_thread import HeartbeatSchedule, HeartbeatThread
from aiokwire.net import Address, ApiVersions
from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages.heartbeat import HeartbeatRequest
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import BOOTSTRAP, BROKER_NAME

INTERVAL = 3.0


def build(versions: ApiVersions, _last: Response | None) -> tuple[Request[Any], int]:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="unknown"), versions.pick(HeartbeatRequest)


def beat(**options: Any) -> HeartbeatSchedule:
    times = {"interval": INTERVAL, "timeout": 5.0, "max_poll_interval": 1e9} | options
    return HeartbeatSchedule(node_id=1, address=Address(BROKER_NAME, 9092), build=build, **times)


@asynccontextmanager
async def heartbeating(outcomes: list[tuple[float, Response | KafkaError]]) -> AsyncIterator[HeartbeatThread]:
    """Run a heartbeat thread that appends the time and outcome of each heartbeat."""
    async with Client(ClientConfig(bootstrap_servers=BOOTSTRAP), rng=random.Random(1)) as client:
        thread = HeartbeatThread(client, lambda _beat, outcome: outcomes.append((anyio.current_time(), outcome)))
        client.spawn(thread.run)
        yield thread


def test_heartbeats_are_sent_at_their_interval_and_hardly_wake_the_loop() -> None:
    async def main(world: World) -> None:
        outcomes: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(outcomes) as thread:
            thread.start(beat())
            assert await world.turns_per_second(600) < 10
            times = [moment for moment, _ in outcomes]
            assert len(times) == 199
            assert all(abs(after - before - INTERVAL) < 0.1 for before, after in itertools.pairwise(times))
            codes = {getattr(outcome, "error_code", None) for _, outcome in outcomes}
            assert codes == {ErrorCode.UNKNOWN_MEMBER_ID}

    simulate(main)


@pytest.mark.parametrize("silent", [False, True])
def test_heartbeats_resume_when_a_broker_is_back(silent: bool) -> None:
    async def main(world: World) -> None:
        outcomes: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(outcomes) as thread:
            thread.start(beat(), now=True)
            await anyio.sleep(10)
            await world.host.die(power=silent)
            assert await world.turns_per_second(600) < 40
            assert isinstance(outcomes[-1][1], KafkaError)
            await world.host.revive()
            back = anyio.current_time()
            await anyio.sleep(10)
            first = next(
                moment for moment, outcome in outcomes if moment > back and not isinstance(outcome, KafkaError)
            )
            assert first - back < 5 + INTERVAL + 1, "an attempt in progress, and the longest pause"

    simulate(main)


def test_an_update_with_the_coordinator_found_again_sends_a_heartbeat_before_the_pause_ends() -> None:
    async def first_after(world: World, outcomes: list[tuple[float, Response | KafkaError]], back: float) -> float:
        await anyio.sleep(INTERVAL + 1)
        return (
            next(moment for moment, outcome in outcomes if moment > back and not isinstance(outcome, KafkaError)) - back
        )

    async def main(world: World) -> None:
        outcomes: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(outcomes) as thread:
            thread.start(beat(), now=True)
            for update, least, most in ((False, 1.5, INTERVAL), (True, 0.0, 1.3)):
                await anyio.sleep(10)
                await world.host.die(power=False)
                await anyio.sleep(60)
                failed = len(outcomes)
                while len(outcomes) == failed:  # noqa: ASYNC110 - just after an attempt, in simulated time
                    await anyio.sleep(0.1)
                await world.host.revive()
                if update:
                    thread.update(beat(), now=True)
                assert least <= await first_after(world, outcomes, anyio.current_time()) <= most

    simulate(main)


def test_repeated_updates_with_a_coordinator_do_not_send_heartbeats_without_pause() -> None:
    """The user's loop reaches the coordinator, and the thread does not."""

    async def main(world: World) -> None:
        outcomes: list[tuple[float, Response | KafkaError]] = []
        async with Client(ClientConfig(bootstrap_servers=BOOTSTRAP), rng=random.Random(1)) as client:

            def on_answer(_beat: HeartbeatSchedule, outcome: Response | KafkaError) -> None:
                outcomes.append((anyio.current_time(), outcome))
                thread.update(beat(), now=True)

            thread = HeartbeatThread(client, on_answer)
            client.spawn(thread.run)
            await world.host.die(power=False)
            thread.start(beat(), now=True)
            await anyio.sleep(100)
            assert 80 < len(outcomes) < 140, "once a second after a while"
            assert all(isinstance(outcome, KafkaError) for _, outcome in outcomes)

    simulate(main)


def gaps(outcomes: list[tuple[float, Response | KafkaError]], since: float) -> list[float]:
    """Return the rounded times between responses later than `since`."""
    times = [moment for moment, outcome in outcomes if moment > since and not isinstance(outcome, KafkaError)]
    return [round(after - before, 1) for before, after in itertools.pairwise(times)]


def test_eager_heartbeats_slow_down_and_speed_up_again_when_a_coordinator_is_back() -> None:
    """Other members may have timed out, and the rebalance waits until all members join it."""

    async def main(world: World) -> None:
        outcomes: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(outcomes) as thread:
            began = anyio.current_time()
            thread.start(beat(eager=True))
            await anyio.sleep(20)
            assert gaps(outcomes, began)[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
            await world.host.die(power=False)
            await anyio.sleep(20)
            await world.host.revive()
            back = anyio.current_time()
            await anyio.sleep(20)
            assert gaps(outcomes, back)[:7] == [0.1, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0]

    simulate(main)


def test_eager_heartbeats_speed_up_when_the_group_changes_at_most_once_per_interval() -> None:
    async def main(world: World) -> None:
        outcomes: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(outcomes) as thread:
            thread.start(beat(eager=True))
            await anyio.sleep(20)
            sped_up = anyio.current_time()
            for _ in range(10):
                thread.speed_up()
                await anyio.sleep(0.25)
            await anyio.sleep(20)
            assert gaps(outcomes, sped_up)[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]

    simulate(main)


def test_heartbeats_that_are_not_eager_keep_their_interval_when_the_group_changes() -> None:
    async def main(world: World) -> None:
        outcomes: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(outcomes) as thread:
            thread.start(beat())
            began = anyio.current_time()
            for _ in range(100):
                thread.speed_up()
                await anyio.sleep(0.2)
            assert set(gaps(outcomes, began)) == {3.0}

    simulate(main)


def test_heartbeats_stop_after_max_poll_interval_and_resume_with_a_poll() -> None:
    async def main(world: World) -> None:
        outcomes: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(outcomes) as thread:
            thread.start(beat(max_poll_interval=30.0))
            began = anyio.current_time()
            await anyio.sleep(300)
            assert 27 < outcomes[-1][0] - began <= 30 + INTERVAL
            before = len(outcomes)
            thread.record_poll()
            await anyio.sleep(10)
            assert len(outcomes) > before

    simulate(main)
