"""The one place where work leaves the event loop.

Used for what blocks or computes long: compression and decompression of large batches, fsync, deletion of files.
A loop that simulates time does such work itself: by a coroutine method `run_in_thread(func, *args)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

import anyio
import anyio.to_thread

T = TypeVar("T")
Args = TypeVarTuple("Args")

# One bound per event loop: as many as a small machine's cores can use, so that compression never starves the loop.
MAX_THREADS = 4
_limiter: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("aiokwire_threads")


async def run_in_thread(func: Callable[[*Args], T], *args: *Args) -> T:
    """Run `func` in a worker thread and give back its result.

    A cancelled caller waits for the thread to end, so that `func` never works on memory that was given back;
    keep `func` short.
    """
    simulated = getattr(asyncio.get_running_loop(), "run_in_thread", None)
    if simulated is not None:
        result: T = await simulated(func, *args)
        return result
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_THREADS)
        _limiter.set(limiter)
    return await anyio.to_thread.run_sync(func, *args, limiter=limiter)
