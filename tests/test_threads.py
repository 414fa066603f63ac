"""Work leaves the loop by one door, and a cancelled caller waits for it."""

from __future__ import annotations

import threading

import anyio
import anyio.from_thread
import pytest

from aiokwire.threads import run_in_thread


async def test_a_function_runs_in_another_thread_and_gives_its_result() -> None:
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
