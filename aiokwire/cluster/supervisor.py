"""The one task that owns a client's task group.

A cancel scope must be left by the task that entered it, but web frameworks and test fixtures call
`start()` and `close()` of a client from different tasks. So a separate task enters and leaves
the task group, and the calls only signal it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVarTuple

import anyio
import anyio.abc

from aiokwire.async_library import start_soon
from aiokwire.errors import ClosedError
from aiokwire.log_fields import FieldLogger, get_logger

Args = TypeVarTuple("Args")

logger: FieldLogger = get_logger(__name__)


class Supervisor:
    """A task group that outlives its starting call. Calls `on_end` once, when its tasks ended."""

    def __init__(self, name: str, on_end: Callable[[BaseException | None], None]) -> None:
        self._name = name
        self._on_end = on_end
        self._group: anyio.abc.TaskGroup | None = None
        self._stop = anyio.Event()
        self._started = anyio.Event()
        self._ended = anyio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start on the running loop."""
        # The only task of a client outside a task group: it owns the group.
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self._name)
        await self._started.wait()

    def spawn(
        self, func: Callable[[*Args], Coroutine[Any, Any, object]], *args: *Args, name: str | None = None
    ) -> None:
        """Run a coroutine function in the group; an exception that leaves it ends the group.

        Raises: ClosedError: the group has ended or never began.
        """
        if self._group is None or self._stop.is_set():
            raise ClosedError(f"{self._name} is closed to new tasks")
        start_soon(self._group, func, *args, name=name or getattr(func, "__qualname__", None))

    def stop(self) -> None:
        """Cancel all tasks; `wait` returns when they have ended."""
        self._stop.set()

    async def wait(self) -> None:
        """Wait until every task has ended."""
        await self._ended.wait()

    async def _run(self) -> None:
        failure: BaseException | None = None
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                self._started.set()
                await self._stop.wait()
                group.cancel_scope.cancel()
        except Exception as error:
            failure = _first(error)
            logger.error("%s failed", self._name, exc_info=failure)
        finally:
            self._group = None
            self._stop.set()
            self._started.set()
            try:
                self._on_end(failure)
            finally:
                self._ended.set()


def _first(error: BaseException) -> BaseException:
    """The first exception in a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
