"""Heartbeats on simulated time: on the loop itself, at their interval, through long outages, and then silence."""

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
from aiokwire.group import HeartbeatSchedule, HeartbeatThread
from aiokwire.net import Address, ApiVersions
from aiokwire.protocol import Request, Response
from aiokwire.protocol.messages.heartbeat import HeartbeatRequest
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import BOOTSTRAP, BROKER_NAME

INTERVAL = 3.0


def build(versions: ApiVersions, _last: Response | None) -> tuple[Request[Any], int]:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="nobody"), versions.pick(HeartbeatRequest)


def beat(**options: Any) -> HeartbeatSchedule:
    times = {"interval": INTERVAL, "timeout": 5.0, "max_poll_interval": 1e9} | options
    return HeartbeatSchedule(node_id=1, address=Address(BROKER_NAME, 9092), build=build, **times)


@asynccontextmanager
async def heartbeating(told: list[tuple[float, Response | KafkaError]]) -> AsyncIterator[HeartbeatThread]:
    """A thread that notes when it is told what."""
    async with Client(ClientConfig(bootstrap_servers=BOOTSTRAP), rng=random.Random(1)) as client:
        thread = HeartbeatThread(client, lambda _beat, outcome: told.append((anyio.current_time(), outcome)))
        client.spawn(thread.run)
        yield thread


def test_beats_come_at_their_interval_and_hardly_wake_the_loop() -> None:
    async def main(world: World) -> None:
        told: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(told) as thread:
            thread.start(beat())
            assert await world.turns_per_second(600) < 10
            times = [moment for moment, _ in told]
            assert len(times) == 199
            assert all(abs(after - before - INTERVAL) < 0.1 for before, after in itertools.pairwise(times))
            codes = {getattr(outcome, "error_code", None) for _, outcome in told}
            assert codes == {ErrorCode.UNKNOWN_MEMBER_ID}

    simulate(main)


@pytest.mark.parametrize("silent", [False, True])
def test_beats_go_on_when_a_broker_is_back(silent: bool) -> None:
    async def main(world: World) -> None:
        told: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(told) as thread:
            thread.start(beat(), now=True)
            await anyio.sleep(10)
            await world.host.die(power=silent)
            assert await world.turns_per_second(600) < 40
            assert isinstance(told[-1][1], KafkaError)
            await world.host.revive()
            back = anyio.current_time()
            await anyio.sleep(10)
            first = next(moment for moment, outcome in told if moment > back and not isinstance(outcome, KafkaError))
            assert first - back < 5 + INTERVAL + 1, "an attempt that is under way, and the longest pause"

    simulate(main)


def test_a_coordinator_that_was_found_again_is_asked_before_the_pause_of_one_who_is_told_nothing_is_over() -> None:
    async def first_after(world: World, told: list[tuple[float, Response | KafkaError]], back: float) -> float:
        await anyio.sleep(INTERVAL + 1)
        return next(moment for moment, outcome in told if moment > back and not isinstance(outcome, KafkaError)) - back

    async def main(world: World) -> None:
        told: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(told) as thread:
            thread.start(beat(), now=True)
            for tell, least, most in ((False, 1.5, INTERVAL), (True, 0.0, 1.3)):
                await anyio.sleep(10)
                await world.host.die(power=False)
                await anyio.sleep(60)
                failed = len(told)
                while len(told) == failed:  # noqa: ASYNC110 - just after an attempt, in simulated time
                    await anyio.sleep(0.1)
                await world.host.revive()
                if tell:
                    thread.update(beat(), now=True)
                assert least <= await first_after(world, told, anyio.current_time()) <= most

    simulate(main)


def test_a_coordinator_that_is_said_to_be_found_again_and_again_is_not_asked_without_pause() -> None:
    """The user's loop reaches it, and the thread does not."""

    async def main(world: World) -> None:
        told: list[tuple[float, Response | KafkaError]] = []
        async with Client(ClientConfig(bootstrap_servers=BOOTSTRAP), rng=random.Random(1)) as client:

            def on_answer(_beat: HeartbeatSchedule, outcome: Response | KafkaError) -> None:
                told.append((anyio.current_time(), outcome))
                thread.update(beat(), now=True)

            thread = HeartbeatThread(client, on_answer)
            client.spawn(thread.run)
            await world.host.die(power=False)
            thread.start(beat(), now=True)
            await anyio.sleep(100)
            assert 80 < len(told) < 140, "once a second when it was long"
            assert all(isinstance(outcome, KafkaError) for _, outcome in told)

    simulate(main)


def gaps(told: list[tuple[float, Response | KafkaError]], since: float) -> list[float]:
    """Between answers that came later than `since`, rounded."""
    times = [moment for moment, outcome in told if moment > since and not isinstance(outcome, KafkaError)]
    return [round(after - before, 1) for before, after in itertools.pairwise(times)]


def test_eager_beats_grow_apart_and_come_quickly_again_when_a_coordinator_is_back() -> None:
    """Others may have been taken for dead meanwhile, and wait until all have learned of the rebalance."""

    async def main(world: World) -> None:
        told: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(told) as thread:
            began = anyio.current_time()
            thread.start(beat(eager=True))
            await anyio.sleep(20)
            assert gaps(told, began)[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]
            await world.host.die(power=False)
            await anyio.sleep(20)
            await world.host.revive()
            back = anyio.current_time()
            await anyio.sleep(20)
            assert gaps(told, back)[:7] == [0.1, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0]

    simulate(main)


def test_eager_beats_come_quickly_again_when_the_group_changes_but_not_more_than_once_in_an_interval() -> None:
    async def main(world: World) -> None:
        told: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(told) as thread:
            thread.start(beat(eager=True))
            await anyio.sleep(20)
            stirred = anyio.current_time()
            for _ in range(10):
                thread.speed_up()
                await anyio.sleep(0.25)
            await anyio.sleep(20)
            assert gaps(told, stirred)[:7] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0]

    simulate(main)


def test_beats_that_are_not_eager_do_not_care_what_changes() -> None:
    async def main(world: World) -> None:
        told: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(told) as thread:
            thread.start(beat())
            began = anyio.current_time()
            for _ in range(100):
                thread.speed_up()
                await anyio.sleep(0.2)
            assert set(gaps(told, began)) == {3.0}

    simulate(main)


def test_silence_begins_when_patience_ends_and_ends_with_progress() -> None:
    async def main(world: World) -> None:
        told: list[tuple[float, Response | KafkaError]] = []
        async with heartbeating(told) as thread:
            thread.start(beat(max_poll_interval=30.0))
            began = anyio.current_time()
            await anyio.sleep(300)
            assert 27 < told[-1][0] - began <= 30 + INTERVAL
            before = len(told)
            thread.record_poll()
            await anyio.sleep(10)
            assert len(told) > before

    simulate(main)
