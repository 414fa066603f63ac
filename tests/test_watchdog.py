"""A blocked loop is noticed, with the line that blocked it; a busy one is not."""

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
    """What the watchdog of the running loop told."""

    def __init__(self, threshold: float) -> None:
        self.told: list[BlockedLoop] = []
        self._came = anyio.Event()
        self.watchdog = Watchdog(self._tell, threshold=threshold)

    def _tell(self, blocked: BlockedLoop) -> None:
        self.told.append(blocked)
        self._came.set()

    async def once(self) -> BlockedLoop:
        with anyio.fail_after(PATIENCE):
            await self._came.wait()
        self._came = anyio.Event()
        return self.told[-1]


def handler(seconds: float) -> None:
    """The code that is to be blamed."""
    time.sleep(seconds)


async def begun() -> None:
    """The watch has had time to begin."""
    with anyio.move_on_after(0.05):
        await anyio.sleep_forever()


async def test_the_line_that_blocked_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(0.2)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_beside(watched.watchdog.run, name="watch"))
        for _ in range(2):
            await begun()
            handler(1.0)
            blocked = await watched.once()
            assert 0.5 < blocked.seconds < 3
            assert blocked.where is not None
            assert (Path(blocked.where.file).name, blocked.where.function) == ("test_watchdog.py", "handler")
            assert blocked.where in blocked.stack
        group.cancel_scope.cancel()
    assert len(watched.told) == 2
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert f"{watched.told[0].where}" in messages[0]


async def test_it_is_told_at_the_first_turn_of_the_loop_after_the_block() -> None:
    watched = Watched(0.2)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_beside(watched.watchdog.run, name="watch"))
        await begun()
        handler(1.0)
        for _ in range(2):
            await anyio.lowlevel.checkpoint()
        assert len(watched.told) == 1
        group.cancel_scope.cancel()


async def test_a_loop_that_is_merely_busy_is_not_blocked() -> None:
    watched = Watched(0.5)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_beside(watched.watchdog.run, name="watch"))
        with anyio.move_on_after(1.2):
            while True:
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert watched.told == []


async def test_several_watchdogs_of_one_loop_log_once(caplog: pytest.LogCaptureFixture) -> None:
    watches = [Watched(0.2), Watched(0.2)]
    async with anyio.create_task_group() as group:
        for watched in watches:
            group.start_soon(lambda watched=watched: run_beside(watched.watchdog.run, name="watch"))  # type: ignore[misc]  # mypy cannot type a lambda's default
        await begun()
        handler(0.8)
        for watched in watches:
            await watched.once()
        group.cancel_scope.cancel()
    assert len(caplog.records) == 1


def test_a_simulated_loop_is_not_watched() -> None:
    async def main() -> list[BlockedLoop]:
        watched = Watched(0.1)
        await run_beside(watched.watchdog.run, name="watch")
        return watched.told

    assert run(SimLoop(seed=1), main()) == []


def test_the_programs_own_line_is_preferred_to_those_of_libraries() -> None:
    stdlib, libraries = sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")
    main, inside = Frame("/srv/app/main.py", 3, "handle"), Frame(f"{libraries}/requests/api.py", 9, "get")
    deepest = Frame(f"{stdlib}/socket.py", 7, "recv")
    assert own_frame([main, inside, deepest]) == main
    assert own_frame([inside, deepest]) == inside
    assert own_frame([deepest]) == deepest
    assert own_frame([]) is None


def test_without_a_line_the_message_says_what_it_may_have_been() -> None:
    assert "suspended" in str(BlockedLoop(3.0, None, ()))
