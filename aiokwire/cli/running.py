"""Runs a verb: on uvloop, cancelled cleanly by Ctrl-C or SIGTERM, with errors in one line."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import uvloop

from aiokwire.errors import KafkaError

INTERRUPTED = 130  # the shells' status for SIGINT
FAILED = 1

T = TypeVar("T")


def run(main: Callable[[], Coroutine[Any, Any, int | None]]) -> None:
    """Run a verb's coroutine, and exit with the status that it returns."""
    sys.exit(_status(main))


def result_of(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the result of a coroutine, to prompt outside the event loop; on errors and signals exit as `run` does."""
    results: list[T] = []

    async def keep() -> None:
        results.append(await main())

    status = _status(keep)
    if status or not results:
        sys.exit(status)
    return results[0]


def _status(main: Callable[[], Coroutine[Any, Any, int | None]]) -> int:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_until_signal(main)) or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # `aiokwire consume ... | head`: the reader has closed the pipe. Keep the interpreter from flushing to it.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115 - lives until the process ends
        return 0
    except KafkaError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except BaseExceptionGroup as group:
        known, rest = group.split(KafkaError)
        if rest is not None or known is None:
            raise
        print(f"error: {_first(known)}", file=sys.stderr)
        return FAILED


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


async def _until_signal(main: Callable[[], Coroutine[Any, Any, int | None]]) -> int | None:
    """Cancel the verb on SIGTERM, as on Ctrl-C, so that clients close."""
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
        return 0
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
