"""The life of a member: its driver works until it is told to leave, or is cancelled. Both kinds of member have one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import anyio


class Departure(NamedTuple):
    """How to leave."""

    deadline: float  # on the loop's clock
    reason: str


class Life:
    """Of one membership."""

    def __init__(self) -> None:
        self.departure: Departure | None = None  # once it is told to leave
        self._working: anyio.CancelScope | None = None  # around the driver, while it runs
        self._ended = anyio.Event()

    async def work(self, drive: Callable[[], Awaitable[None]]) -> None:
        """Drive the member, until that ends or the member is to leave."""
        with anyio.CancelScope() as self._working:
            if self.departure is None:
                await drive()

    def end(self) -> None:
        """It has left, or failed: nobody needs to wait any more."""
        self._ended.set()

    async def leave(self, timeout: float, reason: str) -> None:
        """Have the driver stop and the member leave; wait for that, at most `timeout` seconds."""
        if self.departure is None:
            self.departure = Departure(anyio.current_time() + timeout, reason)
            if self._working is not None:
                self._working.cancel()
        if self._working is not None:
            with anyio.move_on_after(timeout):
                await self._ended.wait()
