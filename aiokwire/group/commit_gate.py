"""Keeps commits and joins apart: a join waits for the commits in flight, and a commit waits for the
end of the join, except while JoinGroup waits for the other members.

Until all of them have joined, the coordinator accepts commits in the last generation. One that is
sent later would arrive in a generation that it does not name, and be refused.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class _Gate(enum.Enum):
    OPEN = enum.auto()
    EARLY = enum.auto()  # the join waits for other members
    CLOSED = enum.auto()


class CommitGate:
    """Open while commits may be sent."""

    def __init__(self) -> None:
        self._state = _Gate.OPEN
        self._in_flight = 0
        self._changed = anyio.Event()

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Wait until commits may be sent; within the block the commit counts as in flight."""
        while self._state is _Gate.CLOSED:
            await self._changed.wait()
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            self._notify()

    async def close(self, timeout: float) -> None:
        """Hold new commits and wait for those in flight, at most `timeout` seconds."""
        self._state = _Gate.CLOSED
        with anyio.move_on_after(timeout):
            while self._in_flight:
                await self._changed.wait()

    def open_early(self) -> None:
        """Let commits pass in the last generation, until one is refused or the join is over."""
        self._state = _Gate.EARLY
        self._notify()

    def close_early(self) -> None:
        """Hold new commits: the others have joined."""
        if self._state is _Gate.EARLY:
            self._state = _Gate.CLOSED

    def open(self) -> None:
        """Let commits pass."""
        self._state = _Gate.OPEN
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
