"""Runs work outside the event loop: the only module that starts threads.

`run_in_thread` is for work that blocks or computes long: (de)compression of large batches, fsync,
deletion of files. A loop that simulates time does it in a coroutine `run_in_thread(func, *args)`.
`call_in_thread` is the same for protocol objects, which cannot await: decoding of large responses.

`run_beside` is for work that must continue while a handler blocks the loop: heartbeats, the
watchdog. It has its own loop and thread; on a loop that simulates time it is a normal coroutine.
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

logger: logging.Logger = logging.getLogger(__name__)

# The bound per event loop: no more than a small machine's cores can run, so that compression never starves the loop.
MAX_THREADS = 4
# How long `run_beside` waits for its thread after cancelling it (seconds). The thread needs milliseconds of CPU, but on
# an overloaded machine they came more than a second late.
END_TIMEOUT = 5.0
_limiter: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("aiokwire_threads")


async def run_in_thread(func: Callable[[*Args], T], *args: *Args) -> T:
    """Run `func` in a worker thread and return its result.

    A cancelled caller waits for the thread to end, so that `func` never uses memory that was
    released; keep `func` short.
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
    """Run `func` in a daemon thread, which does not delay the exit; the future has its result."""
    future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(func(*args))
        except BaseException as error:  # raised by the future's `result`
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def call_in_thread(func: Callable[[], T], done: Callable[[concurrent.futures.Future[T]], object], *, name: str) -> None:
    """Run `func` in a daemon thread, then `done` on the running loop with the future of its result.

    For protocol objects, which cannot await. If the loop is closed meanwhile, `done` is not called.
    """
    loop = asyncio.get_running_loop()

    def report(future: concurrent.futures.Future[T]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(done, future)

    if hasattr(loop, "run_in_thread"):  # it simulates time
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        try:
            future.set_result(func())
        except Exception as error:  # raised by the future's `result`
            future.set_exception(error)
        loop.call_soon(done, future)
    else:
        start_thread(func, name=name).add_done_callback(report)


def call_for_each(func: Callable[[T], object], items: Iterable[T], *, threads: int, name: str) -> list[Exception]:
    """Call `func` with each item in up to `threads` threads with the caller's, and wait for all.

    For work that waits for a device, called from a thread. Returns the exceptions; an exception
    does not prevent the calls with other items.
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
    """Run a coroutine function on its own event loop in its own thread, until it ends.

    Cancelling the caller cancels `main`, and waits for the thread, at most `end_timeout` seconds.
    `main` may access state of the caller's loop only by single assignments and
    `call_soon_threadsafe`, and must not log: a handler that blocks the caller's loop may hold a
    lock of the log. The thread does not delay the interpreter's exit, and like the caller's tasks
    does not exist in a forked process.

    Raises: the exception of `main`.
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
        cancelled_at = here.time()
        beside.cancel()
        try:
            with anyio.move_on_after(end_timeout, shield=True):
                await beside.ended.wait()
                while thread.is_alive():  # noqa: ASYNC110 - its last steps, which it cannot report
                    await anyio.sleep(0.001)
        finally:
            if thread.is_alive():
                # Not `end_timeout`: the wait may be cut short, as by a loop that ends.
                waited = here.time() - cancelled_at
                logger.warning("thread %r is still running %.3f s after it was cancelled", name, waited)
    if beside.error is not None:
        raise beside.error


class _Beside:
    """The thread of `run_beside`, and its loop."""

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
        """Run `main`; the thread's function."""
        try:
            # Not the user's type of loop: a daemon thread must not run foreign code when the interpreter exits. Not
            # asyncio.Runner either: it waits for threads that resolve names, which may take a resolver's timeout.
            with contextlib.closing(asyncio.SelectorEventLoop()) as loop:
                loop.run_until_complete(self._run())
        except BaseException as error:  # raised by the caller
            self.error = error
        finally:
            with contextlib.suppress(RuntimeError):  # the caller's loop is closed
                self._here.call_soon_threadsafe(self.ended.set)

    async def _run(self) -> None:
        with anyio.CancelScope() as self._scope:
            self._there = asyncio.get_running_loop()
            if self._cancelled:
                self._scope.cancel()
            await self._main(*self._args)

    def cancel(self) -> None:
        """Cancel `main`, from the caller's loop."""
        self._cancelled = True
        if self._there is not None and self._scope is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._there.call_soon_threadsafe(self._scope.cancel)
