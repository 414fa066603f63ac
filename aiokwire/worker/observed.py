"""Calls handlers within what the hook `around_process` returns, where it is overridden."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiokwire.consumer import ConsumerRecord
from aiokwire.hooks import HookCaller, Hooks
from aiokwire.worker.context import Context
from aiokwire.worker.handlers import Handler

Attempt: TypeAlias = Callable[[ConsumerRecord[bytes, bytes], Context], Awaitable[object]]


class ObservedHandler(HookCaller):
    """A handler whose attempts run within what a hook returns for their record."""

    def __init__(self, handler: Handler, hooks: Hooks) -> None:
        super().__init__(hooks, logging.getLogger("aiokwire.worker"))
        self._handler = handler

    async def __call__(self, record: ConsumerRecord[bytes, bytes], context: Context) -> None:
        """Call the handler."""
        with self._around(self._hooks.around_process, record):
            await self._handler(record, context)


def attempt_of(handler: Handler, hooks: Hooks | None) -> Attempt:
    """Return what handles a record: the handler itself, unless a hook surrounds it."""
    if hooks is None or not HookCaller(hooks, logging.getLogger("aiokwire.worker")).is_overridden("around_process"):
        return handler
    return ObservedHandler(handler, hooks)
