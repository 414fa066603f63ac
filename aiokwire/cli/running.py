"""Runs a verb: on uvloop if it is installed, cancelled cleanly by Ctrl-C or SIGTERM, with errors in
one line."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from aiokwire.cli.standard import STDOUT, discard_stdout
from aiokwire.errors import KafkaError

INTERRUPTED = 130  # the shells' status for SIGINT
TERMINATED = 143  # the shells' status for SIGTERM
FAILED = 1

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's loop, or asyncio's where uvloop is not installed."""
    try:
        from uvloop import new_event_loop as new_loop
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return new_loop()


def run(main: Callable[[], Coroutine[Any, Any, int | None]], *, until_stopped: bool = False) -> None:
    """Run a verb's coroutine, and exit with the status that it returns.

    SIGTERM is a failure (143), except for a verb that runs `until_stopped`.
    """
    sys.exit(_status(main, 0 if until_stopped else TERMINATED))


def result_of(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return a coroutine's result, to prompt outside the loop; errors and signals exit as `run`."""
    results: list[T] = []

    async def keep() -> None:
        results.append(await main())

    status = _status(keep, TERMINATED)
    if status or not results:
        sys.exit(status)
    return results[0]


def _status(main: Callable[[], Coroutine[Any, Any, int | None]], terminated: int) -> int:
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_until_signal(main, terminated)) or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # `aiokwire consume ... | head`: the reader has closed the pipe.
        discard_stdout()
        return 0
    except (KafkaError, OSError) as error:
        if not _is_known(error):
            raise
        return _fail(error)
    except BaseExceptionGroup as group:
        known, rest = group.split(_is_known)
        if rest is not None or known is None:
            raise
        return _fail(_first(known))


def _is_known(error: BaseException) -> bool:
    """Whether the error is for the user: Kafka's, or one that names a file or standard output."""
    return isinstance(error, KafkaError) or (isinstance(error, OSError) and error.filename is not None)


def _fail(error: BaseException) -> int:
    if isinstance(error, OSError) and not isinstance(error, KafkaError):
        if error.filename == STDOUT:
            discard_stdout()
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
    else:
        print(f"error: {error}", file=sys.stderr)
    return FAILED


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


async def _until_signal(main: Callable[[], Coroutine[Any, Any, int | None]], terminated_status: int) -> int | None:
    """Cancel the verb on SIGTERM as on Ctrl-C, so clients close; return `terminated_status`."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    terminated = False

    def on_terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    loop.add_signal_handler(signal.SIGTERM, on_terminate)
    try:
        return await main()
    except asyncio.CancelledError:
        if not terminated:
            raise  # Ctrl-C: asyncio's runner turns it into KeyboardInterrupt
        task.uncancel()
        return terminated_status
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
