"""The wall clock, for timestamps in records, and the event loop's clock, for everything else.

A loop that simulates time has a method `wall_time()`, which returns seconds since the epoch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


def loop_time() -> float:
    """Return the time of the running event loop, in seconds.

    Unlike `anyio.current_time` it also works in callbacks of the loop, outside of a task, where
    sniffio, if it is installed, reports no asynchronous library.
    """
    return asyncio.get_running_loop().time()


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return a function for `loop.time()`, without a call in Python if the loop is one of asyncio's
    own."""
    is_usual = getattr(type(loop), "time", None) is asyncio.BaseEventLoop.time and "time" not in vars(loop)
    return time.monotonic if is_usual else loop.time  # noqa: TID251 - what the loop calls itself


def background_pause(seconds: float) -> float:
    """Return the pause between two rounds of periodic work that nothing waits for.

    A loop that simulates time may make it longer by a method of this name: jumps over hours would
    else be spent on such work.
    """
    longer = getattr(asyncio.get_running_loop(), "background_pause", None)
    return seconds if longer is None else float(longer(seconds))


def wall_ms() -> int:
    """Return milliseconds since the epoch, by the running loop's wall clock if it has one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return time.time_ns() // 1_000_000
    wall_time = getattr(loop, "wall_time", None)
    if wall_time is not None:
        return int(wall_time() * 1000)
    return time.time_ns() // 1_000_000


def wall_ns() -> int:
    """Return nanoseconds since the epoch, by the same clock as `wall_ms`."""
    try:
        wall_time = getattr(asyncio.get_running_loop(), "wall_time", None)
    except RuntimeError:
        wall_time = None
    return time.time_ns() if wall_time is None else int(wall_time() * 1_000_000_000)


def precise_seconds() -> float:
    """Return a clock that advances within a turn of the loop, to measure how long work takes.

    A loop that simulates time measures by its own clock: there, work takes no time.
    """
    loop = asyncio.get_running_loop()
    if hasattr(loop, "wall_time"):
        return loop.time()
    return time.perf_counter()
