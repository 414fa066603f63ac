"""Cancels a coroutine at a chosen await, in a chosen way; for tests of all of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Generator
from typing import Any

import anyio.lowlevel

from aiokwire.producer import Producer

# Options of a producer with short waits.
QUICK: dict[str, Any] = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "metadata_min_interval_ms": 1,
    "reconnect_backoff_ms": 2,
    "reconnect_backoff_max_ms": 20,
    "linger_ms": 1,
}

AT_ONCE = "as it begins to wait"
LATER = "a turn of the loop later"
WITH_RESULT = "with the result available"
WAYS = (AT_ONCE, LATER, WITH_RESULT)


class CancelAt:
    """Awaits a coroutine, cancels the task at await `step`; `reached`: whether there was one."""

    def __init__(self, coroutine: Coroutine[Any, Any, object], step: int, way: str) -> None:
        self._coroutine = coroutine
        self._step = step
        self._way = way
        self.reached = False

    def __await__(self) -> Generator[Any, Any, object]:
        try:
            for number in itertools.count(1):
                waited_for = self._coroutine.send(None)
                if number == self._step:
                    self._cancel(waited_for)
                try:
                    yield waited_for
                except BaseException as error:
                    # As a task does it: the result or the exception of the wait continues inside.
                    waited_for = self._coroutine.throw(error)
                    while True:
                        try:
                            yield waited_for
                        except BaseException as again:
                            waited_for = self._coroutine.throw(again)
                        else:
                            waited_for = self._coroutine.send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError("unreachable")

    def _cancel(self, waited_for: object) -> None:
        self.reached = True
        task = asyncio.current_task()
        assert task is not None
        if self._way == AT_ONCE:
            task.cancel()
        elif self._way == LATER or not isinstance(waited_for, asyncio.Future):
            asyncio.get_running_loop().call_soon(_cancel_unless_done, task)
        else:  # before the task's own callback, so that the task is both resumed with a result and cancelled
            waited_for.add_done_callback(lambda _: _cancel_unless_done(task))


def _cancel_unless_done(task: asyncio.Task[Any]) -> None:
    if not task.done():
        task.cancel()


async def cancel_at(coroutine: Coroutine[Any, Any, object], step: int, way: str) -> tuple[bool, object]:
    """Return whether there was such a step, and the result or the exception."""
    attempt = CancelAt(coroutine, step, way)

    async def run() -> object:
        return await attempt

    task = asyncio.get_running_loop().create_task(run())  # the test cancels it: no task group
    done, _ = await asyncio.wait([task], timeout=10)
    assert done, f"still waiting after a cancellation at step {step}, {way}"
    if task.cancelled():
        return attempt.reached, asyncio.CancelledError()
    return attempt.reached, task.exception() or task.result()


def assert_nothing_held(producer: Producer[Any, Any]) -> None:
    assert producer.buffered == 0
    assert producer.health().records == 0
    assert producer.waiting == 0


async def settle() -> None:
    """Let the loop turn until what was just closed is gone."""
    for _ in range(10):
        await anyio.lowlevel.checkpoint()
