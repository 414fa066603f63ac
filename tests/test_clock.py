"""The wall clock is the loop's own if it has one."""

from __future__ import annotations

import asyncio
import time

import pytest

from aiokwire.clock import clock_of, wall_ms


class SimulatedLoop(asyncio.SelectorEventLoop):
    def wall_time(self) -> float:
        return 1_700_000_000.25


class ShiftedLoop(asyncio.SelectorEventLoop):
    def time(self) -> float:
        return super().time() + 1_000_000


def test_without_a_loop_the_wall_clock_is_the_machines() -> None:
    assert abs(wall_ms() - time.time_ns() // 1_000_000) < 1000


def test_a_simulated_loop_provides_the_wall_clock() -> None:
    async def read() -> int:
        return wall_ms()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        assert runner.run(read()) == 1_700_000_000_250


@pytest.mark.parametrize("kind", [asyncio.SelectorEventLoop, ShiftedLoop])
def test_the_clock_of_a_loop_is_the_loops_own(kind: type[asyncio.SelectorEventLoop]) -> None:
    loop = kind()
    try:
        assert loop.time() <= clock_of(loop)() <= loop.time()
    finally:
        loop.close()


def test_a_clock_that_a_test_has_replaced_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.SelectorEventLoop()
    try:
        monkeypatch.setattr(loop, "time", lambda: 7.0)
        assert clock_of(loop)() == 7.0
    finally:
        loop.close()
