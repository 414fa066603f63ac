"""The wall clock is the loop's own if it has one."""

from __future__ import annotations

import asyncio
import time

from aiokwire.clock import wall_ms


class SimulatedLoop(asyncio.SelectorEventLoop):
    def wall_time(self) -> float:
        return 1_700_000_000.25


def test_without_a_loop_the_wall_clock_is_the_machines() -> None:
    assert abs(wall_ms() - time.time_ns() // 1_000_000) < 1000


def test_a_simulated_loop_provides_the_wall_clock() -> None:
    async def read() -> int:
        return wall_ms()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        assert runner.run(read()) == 1_700_000_000_250
