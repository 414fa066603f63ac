"""The simulated loop: time jumps, and a run that hangs or spins fails."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from aiokwire.clock import wall_ms
from aiokwire.threads import run_in_thread
from tests.simulation.loop import BEGINNING, EPOCH, BusyLoop, SeamBypassed, SimLoop, Standstill, run


def test_an_hour_passes_instantly_on_both_clocks() -> None:
    async def main() -> tuple[float, int]:
        began = anyio.current_time(), wall_ms()
        await anyio.sleep(3600)
        return anyio.current_time() - began[0], wall_ms() - began[1]

    assert run(SimLoop(1), main()) == (3600.0, 3_600_000)


def test_the_wall_clock_starts_at_its_epoch() -> None:
    async def main() -> int:
        return wall_ms()

    assert run(SimLoop(1), main()) == int((EPOCH + BEGINNING) * 1000)


def test_deadlines_end_in_simulated_time() -> None:
    async def main() -> float:
        with anyio.move_on_after(10):
            await anyio.sleep_forever()
        return anyio.current_time()

    assert run(SimLoop(1), main()) == pytest.approx(BEGINNING + 10)


def test_waiting_forever_raises_standstill() -> None:
    with pytest.raises(Standstill):
        run(SimLoop(1), anyio.Event().wait())


def test_spinning_raises_busy_loop() -> None:
    async def main() -> None:
        while True:
            await anyio.lowlevel.checkpoint()

    with pytest.raises(BusyLoop):
        run(SimLoop(1), main())


def test_work_for_threads_runs_on_the_loop_and_takes_time() -> None:
    async def main() -> tuple[str, bool]:
        began = anyio.current_time()
        return await run_in_thread("{}{}".format, "a", "b"), anyio.current_time() > began

    assert run(SimLoop(1), main()) == ("ab", True)


def test_an_executor_is_refused() -> None:
    async def main() -> None:
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, len, "")

    with pytest.raises(SeamBypassed):
        run(SimLoop(1), main())


def test_waiting_tasks_are_cancelled_in_the_order_they_started() -> None:
    cancelled: list[int] = []

    async def wait(number: int) -> None:
        try:
            with anyio.CancelScope():
                await anyio.sleep_forever()
        finally:
            cancelled.append(number)

    async def main() -> None:
        for _ in range(20):
            cancelled.clear()
            async with anyio.create_task_group() as tasks:
                for number in range(40):
                    tasks.start_soon(wait, number)
                await anyio.sleep(1)
                tasks.cancel_scope.cancel()
            assert cancelled == list(range(40))

    run(SimLoop(1), main())
