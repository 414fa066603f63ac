"""The one place where work leaves the event loop.

`run_in_thread` is for what blocks or computes long: compression and decompression of large batches, fsync, deletion
of files. A loop that simulates time does such work itself: by a coroutine method `run_in_thread(func, *args)`.

`run_beside` is for what has to go on while a user's handler blocks the loop: heartbeats, and the watch for such
handlers. It has a loop and a thread of its own; on a loop that simulates time it is a coroutine like any other.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar, TypeVarTuple

import anyio
import anyio.to_thread

T = TypeVar("T")
Args = TypeVarTuple("Args")

logger = logging.getLogger(__name__)

# One bound per event loop: as many as a small machine's cores can use, so that compression never starves the loop.
MAX_THREADS = 4
# How long `run_beside` waits for its thread after cancelling it (seconds). It needs milliseconds of CPU, and nothing
# holds it up, but on a machine with many times more to do than cores these came more than a second late.
END_TIMEOUT = 5.0
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


def start_thread(func: Callable[[*Args], T], *args: *Args, name: str) -> concurrent.futures.Future[T]:
    """Run `func` in a thread of its own, which keeps no interpreter from exiting; the future has its result."""
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(func(*args))
        except BaseException as error:  # all of it is raised by who asks for the result
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def call_for_each(func: Callable[[T], object], items: Iterable[T], *, threads: int, name: str) -> list[Exception]:
    """Call `func` with each item in up to `threads` threads, the caller's own included, and wait for all of them.

    For what waits for a device, from a caller that is in a thread itself. Returns what was raised; an error keeps no
    other item from its call.
    """
    waiting = collections.deque(items)
    errors: list[Exception] = []

    def call() -> None:
        while True:
            try:
                item = waiting.popleft()
            except IndexError:
                return
            try:
                func(item)
            except Exception as error:
                errors.append(error)

    helpers = [start_thread(call, name=name) for _ in range(threads - 1)]
    call()
    for helper in helpers:
        helper.result()
    return errors


async def run_beside(
    main: Callable[[*Args], Coroutine[Any, Any, object]], *args: *Args, name: str, end_timeout: float = END_TIMEOUT
) -> None:
    """Run a coroutine function on an event loop in a thread of its own, until it ends.

    Cancelling the caller cancels `main`, and waits for the thread, `end_timeout` seconds at most. What `main` shares
    with the caller's loop it may only touch by single assignments and `call_soon_threadsafe`, and it must not log: a
    handler that blocks the caller's loop may hold a lock of the log. The thread keeps no interpreter from exiting, and
    is not there in a forked process, as the caller's tasks are not.

    Raises: whatever `main` raises.
    """
    here = asyncio.get_running_loop()
    if hasattr(here, "run_in_thread"):
        await main(*args)
        return
    beside = _Beside(here, main, args)
    thread = threading.Thread(target=beside.run, name=name, daemon=True)
    thread.start()
    try:
        await beside.ended.wait()
    finally:
        told_at = here.time()
        beside.cancel()
        try:
            with anyio.move_on_after(end_timeout, shield=True):
                await beside.ended.wait()
                while thread.is_alive():  # noqa: ASYNC110 - its last steps, of which it cannot tell
                    await anyio.sleep(0.001)
        finally:
            if thread.is_alive():
                # Not `end_timeout`: whoever waits may itself be cut short, as by a loop that ends.
                logger.warning("the thread %r has not ended %.3f s after its cancellation", name, here.time() - told_at)
    if beside.error is not None:
        raise beside.error


class _Beside:
    """What runs in a thread of its own."""

    def __init__(self, here: asyncio.AbstractEventLoop, main: Callable[..., Coroutine[Any, Any, object]], args: Any):
        self.ended = anyio.Event()  # of the caller's loop
        self.error: BaseException | None = None
        self._here = here
        self._main = main
        self._args = args
        self._scope: anyio.CancelScope | None = None  # of the thread's loop
        self._there: asyncio.AbstractEventLoop | None = None  # set after `_scope`, by the thread
        self._cancelled = False

    def run(self) -> None:
        """The thread."""
        try:
            # Not the user's kind of loop: a daemon thread must not be in foreign code when the interpreter exits. Not
            # asyncio.Runner either: it waits for threads that look names up, which may take a resolver's time-out.
            with contextlib.closing(asyncio.SelectorEventLoop()) as loop:
                loop.run_until_complete(self._run())
        except BaseException as error:  # all of it is raised by the caller
            self.error = error
        finally:
            with contextlib.suppress(RuntimeError):  # the caller's loop was closed under it
                self._here.call_soon_threadsafe(self.ended.set)

    async def _run(self) -> None:
        with anyio.CancelScope() as self._scope:
            self._there = asyncio.get_running_loop()
            if self._cancelled:
                self._scope.cancel()
            await self._main(*self._args)

    def cancel(self) -> None:
        """From the caller's loop."""
        self._cancelled = True
        if self._there is not None and self._scope is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._there.call_soon_threadsafe(self._scope.cancel)
