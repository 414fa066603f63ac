"""One timer of an event loop for many deadlines: it fires at the earliest of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class LoopTimer:
    """Calls back once, at the earliest time set since it fired. Used only on its loop."""

    __slots__ = ("_at", "_callback", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
        self._loop = loop
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None
        # Kept beside the handle: uvloop returns a handle without `when()` for a time that has passed.
        self._at = 0.0  # the loop's time for which it is set

    def set(self, at: float) -> None:
        """Fire at `at`, on the loop's clock; has no effect if it is set for an earlier time."""
        if self._handle is not None:
            if self._at <= at:
                return
            self._handle.cancel()
        self._at = at
        self._handle = self._loop.call_at(at, self._fire)

    def cancel(self) -> None:
        """Do not fire until it is set again."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self._handle = None
        self._callback()
