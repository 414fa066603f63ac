"""The watchdog reports a blocked loop with the line that blocked it, but not a busy loop."""

from __future__ import annotations

import sysconfig
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from aiokwire.threads import run_beside
from aiokwire.watchdog import BlockedLoop, Frame, Watchdog, own_frame
from tests.simulation.loop import SimLoop, run

PATIENCE = 10.0


class Watched:
    """The reports of the running loop's watchdog."""

    def __init__(self, threshold: float) -> None:
        self.reports: list[BlockedLoop] = []
        self._reported = anyio.Event()
        self.watchdog = Watchdog(self._report, threshold=threshold)

    def _report(self, blocked: BlockedLoop) -> None:
        self.reports.append(blocked)
        self._reported.set()

    async def next_report(self) -> BlockedLoop:
        with anyio.fail_after(PATIENCE):
            await self._reported.wait()
        self._reported = anyio.Event()
        return self.reports[-1]


def handler(seconds: float) -> None:
    """Block the loop; the watchdog must name this function."""
    time.sleep(seconds)


async def watchdog_started() -> None:
    """Wait for the watchdog to start."""
    with anyio.move_on_after(0.05):
        await anyio.sleep_forever()


async def test_the_report_names_the_line_that_blocked_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(0.2)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_beside(watched.watchdog.run, name="watch"))
        for _ in range(2):
            await watchdog_started()
            handler(1.0)
            blocked = await watched.next_report()
            assert 0.5 < blocked.seconds < 3
            assert blocked.where is not None
            assert (Path(blocked.where.file).name, blocked.where.function) == ("test_watchdog.py", "handler")
            assert blocked.where in blocked.stack
        group.cancel_scope.cancel()
    assert len(watched.reports) == 2
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert f"{watched.reports[0].where}" in messages[0]


async def test_a_block_is_reported_in_the_first_turn_of_the_loop_after_it() -> None:
    watched = Watched(0.2)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_beside(watched.watchdog.run, name="watch"))
        await watchdog_started()
        handler(1.0)
        for _ in range(2):
            await anyio.lowlevel.checkpoint()
        assert len(watched.reports) == 1
        group.cancel_scope.cancel()


async def test_a_busy_loop_is_not_reported() -> None:
    watched = Watched(0.5)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_beside(watched.watchdog.run, name="watch"))
        with anyio.move_on_after(1.2):
            while True:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert watched.reports == []


async def test_several_watchdogs_of_one_loop_log_once(caplog: pytest.LogCaptureFixture) -> None:
    watches = [Watched(0.2), Watched(0.2)]
    async with anyio.create_task_group() as group:
        for watched in watches:
            group.start_soon(lambda watched=watched: run_beside(watched.watchdog.run, name="watch"))  # type: ignore[misc]  # mypy cannot type a lambda's default
        await watchdog_started()
        handler(0.8)
        for watched in watches:
            await watched.next_report()
        group.cancel_scope.cancel()
    assert len(caplog.records) == 1


def test_the_watchdog_ignores_a_simulated_loop() -> None:
    async def main() -> list[BlockedLoop]:
        watched = Watched(0.1)
        await run_beside(watched.watchdog.run, name="watch")
        return watched.reports

    assert run(SimLoop(seed=1), main()) == []


def test_the_programs_own_line_is_preferred_to_those_of_libraries() -> None:
    stdlib, libraries = sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
    main, inside = Frame("/srv/app/main.py", 3, "handle"), Frame(f"{libraries}/requests/api.py", 9, "get")
    deepest = Frame(f"{stdlib}/socket.py", 7, "recv")
    assert own_frame([main, inside, deepest]) == main
    assert own_frame([inside, deepest]) == inside
    assert own_frame([deepest]) == deepest
    assert own_frame([]) is None


def test_without_a_line_the_message_names_possible_causes() -> None:
    assert "suspended" in str(BlockedLoop(3.0, None, ()))
