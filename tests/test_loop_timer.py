"""The timer fires once, at the earliest time it was set for."""

from __future__ import annotations

import asyncio

import anyio
import anyio.lowlevel

from aiokwire.loop_timer import LoopTimer


class Fired:
    """A counter of a timer's calls."""

    def __init__(self) -> None:
        self.count = 0
        self.event = anyio.Event()

    def __call__(self) -> None:
        self.count += 1
        self.event.set()


async def test_the_timer_fires_once_at_the_earliest_time() -> None:
    loop, fired = asyncio.get_running_loop(), Fired()
    timer = LoopTimer(loop, fired)
    started = loop.time()
    for delay in (60.0, 0.01, 30.0):
        timer.set(started + delay)
    with anyio.fail_after(20):
        await fired.event.wait()
    assert fired.count == 1
    assert loop.time() - started < 20


async def test_a_time_in_the_past_fires_in_the_next_turn() -> None:
    loop, fired = asyncio.get_running_loop(), Fired()
    timer = LoopTimer(loop, fired)
    timer.set(loop.time() - 1)
    timer.set(loop.time() + 60)
    with anyio.fail_after(20):
        await fired.event.wait()
    assert fired.count == 1


async def test_the_timer_can_be_set_again_after_it_fired_or_was_cancelled() -> None:
    loop, fired = asyncio.get_running_loop(), Fired()
    timer = LoopTimer(loop, fired)
    timer.set(loop.time())
    with anyio.fail_after(20):
        await fired.event.wait()
    fired.event = anyio.Event()
    timer.set(loop.time() + 60)
    timer.cancel()
    timer.set(loop.time() + 0.01)
    with anyio.fail_after(20):
        await fired.event.wait()
    assert fired.count == 2


async def test_a_cancelled_timer_does_not_fire() -> None:
    loop, fired = asyncio.get_running_loop(), Fired()
    timer = LoopTimer(loop, fired)
    timer.set(loop.time())
    timer.cancel()
    timer.cancel()
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    assert fired.count == 0
