"""Threads start in one module, and a cancelled caller waits for its thread."""

from __future__ import annotations

import asyncio
import re
import threading

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest

from aiokwire.threads import run_beside, run_in_thread
from tests.simulation.loop import SimLoop, run


async def test_a_function_runs_in_another_thread_and_returns_its_result() -> None:
    assert await run_in_thread(threading.get_ident) != threading.get_ident()


async def test_an_error_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0)


async def test_a_cancelled_caller_waits_until_the_work_has_ended() -> None:
    started, release = anyio.Event(), threading.Event()
    ended = False

    def work() -> None:
        nonlocal ended
        anyio.from_thread.run_sync(started.set)
        release.wait(10)
        ended = True

    async with anyio.create_task_group() as group:
        group.start_soon(run_in_thread, work)
        await started.wait()
        group.cancel_scope.cancel()
        release.set()
    assert ended


async def test_run_beside_uses_its_own_thread_and_loop() -> None:
    seen: list[object] = []

    async def main(what: str) -> None:
        await anyio.lowlevel.checkpoint()
        seen.extend([what, threading.get_ident(), asyncio.get_running_loop()])

    await run_beside(main, "argument", name="beside")
    assert seen[0] == "argument"
    assert seen[1] != threading.get_ident()
    assert seen[2] is not asyncio.get_running_loop()


async def test_an_error_in_run_beside_reaches_the_caller() -> None:
    async def main() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_beside(main, name="beside")


async def test_cancelling_run_beside_ends_its_task_and_its_thread() -> None:
    loop, started = asyncio.get_running_loop(), anyio.Event()
    ended = False

    async def main() -> None:
        nonlocal ended
        try:
            loop.call_soon_threadsafe(started.set)
            await anyio.sleep_forever()
        finally:
            ended = True

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run_beside(main, name="to be cancelled"))
        await started.wait()
        group.cancel_scope.cancel()
    assert ended
    assert "to be cancelled" not in [thread.name for thread in threading.enumerate()]


def test_a_thread_that_does_not_end_is_abandoned_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()

    async def cancel_it() -> None:
        loop, started = asyncio.get_running_loop(), anyio.Event()

        async def main() -> None:
            loop.call_soon_threadsafe(started.set)
            release.wait(10)

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run_beside(main, name="stuck", end_timeout=0.05))
            await started.wait()
            group.cancel_scope.cancel()

    asyncio.run(cancel_it())  # outside the suite's loop, which must not block
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "stuck"]
    release.set()
    thread.join(10)
    (message,) = [record.message for record in caplog.records]
    assert 0.05 <= warned_after("stuck", message) < 1


def test_the_warning_names_the_time_waited_for_the_thread_not_the_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A loop that ends cancels its tasks a second time, which cuts the wait short."""
    release = threading.Event()

    async def leave_it() -> None:
        loop, started = asyncio.get_running_loop(), anyio.Event()

        async def main() -> None:
            loop.call_soon_threadsafe(started.set)
            release.wait(10)

        task = loop.create_task(run_beside(main, name="cut short", end_timeout=10))
        await started.wait()
        task.cancel()
        await anyio.lowlevel.checkpoint()

    asyncio.run(leave_it())
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "cut short"]
    release.set()
    thread.join(10)
    (message,) = [record.message for record in caplog.records]
    assert warned_after("cut short", message) < 5


def warned_after(name: str, message: str) -> float:
    """Return the seconds in the warning."""
    found = re.fullmatch(rf"thread '{name}' is still running (\d+\.\d+) s after it was cancelled", message)
    assert found is not None, message
    return float(found[1])


def test_on_a_simulated_loop_run_beside_uses_that_loop() -> None:
    loop = SimLoop(seed=1)
    seen: list[object] = []

    async def main() -> None:
        await anyio.sleep(1000)
        seen.extend([threading.get_ident(), asyncio.get_running_loop()])

    run(loop, run_beside(main, name="beside"))
    assert seen == [threading.get_ident(), loop]


async def test_cancelling_run_beside_does_not_wait_for_a_name_lookup(caplog: pytest.LogCaptureFixture) -> None:
    """Regression: closing a consumer waited seconds for a resolver that did not respond."""
    begun, answered = anyio.Event(), threading.Event()

    async def main(here: asyncio.AbstractEventLoop) -> None:
        here.call_soon_threadsafe(begun.set)
        await asyncio.get_running_loop().run_in_executor(None, answered.wait, 10)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run_beside(main, asyncio.get_running_loop(), name="beside"))
            await begun.wait()
            group.cancel_scope.cancel()
    answered.set()
    assert not caplog.records
    assert not [thread for thread in threading.enumerate() if thread.name == "beside"]
