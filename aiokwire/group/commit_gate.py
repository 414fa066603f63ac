"""Keeps commits and joins apart: a join waits for the commits in flight, and a commit waits for the
end of the join.

A commit sent during a join would arrive in a generation that it does not name, and be refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class CommitGate:
    """Open while commits may be sent."""

    def __init__(self) -> None:
        self._open = True
        self._in_flight = 0
        self._changed = anyio.Event()

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Wait until the gate is open; within the block the commit counts as in flight."""
        while not self._open:
            await self._changed.wait()
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            self._notify()

    async def close(self, timeout: float) -> None:
        """Hold back new commits and wait for those in flight, at most `timeout` seconds."""
        self._open = False
        with anyio.move_on_after(timeout):
            while self._in_flight:
                await self._changed.wait()

    def open(self) -> None:
        """Let commits pass."""
        self._open = True
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
