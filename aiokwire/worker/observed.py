"""Calls handlers within what the hook `around_process` returns, and counted by a circuit."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from aiokwire.hooks import HookCaller, Hooks
from aiokwire.worker.context import Context
from aiokwire.worker.handlers import Handler

if TYPE_CHECKING:
    from aiokwire.worker.circuit_breaker import Circuit

# Called with a record, or with the list of records of a batch.
Attempt: TypeAlias = Callable[[Any, Context], Awaitable[object]]


class ObservedHandler(HookCaller):
    """A handler whose attempts run within what a hook returns for their record."""

    def __init__(self, handler: Handler, hooks: Hooks) -> None:
        super().__init__(hooks, logging.getLogger("aiokwire.worker"))
        self._handler = handler

    async def __call__(self, record: Any, context: Context) -> None:
        """Call the handler."""
        with self._around(self._hooks.around_process, record):
            await self._handler(record, context)


class GuardedHandler:
    """A handler whose calls a circuit counts."""

    def __init__(self, attempt: Attempt, circuit: Circuit) -> None:
        self._attempt = attempt
        self._circuit = circuit

    async def __call__(self, record: Any, context: Context) -> None:
        """Call the handler."""
        probed = self._circuit.begin()
        try:
            await self._attempt(record, context)
        except BaseException:
            self._circuit.raised(probed)
            raise
        self._circuit.succeeded(probed)


def attempt_of(handler: Handler, hooks: Hooks | None, circuit: Circuit | None) -> Attempt:
    """Return what handles a record: the handler itself, unless a hook surrounds it, or a circuit
    counts its calls."""
    attempt = _observed(handler, hooks)
    return attempt if circuit is None else GuardedHandler(attempt, circuit)


def _observed(handler: Handler, hooks: Hooks | None) -> Attempt:
    if hooks is None or not HookCaller(hooks, logging.getLogger("aiokwire.worker")).is_overridden("around_process"):
        return handler.__call__
    return ObservedHandler(handler, hooks)
