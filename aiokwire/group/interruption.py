"""A wait for the coordinator that ends when somebody learns by another way that it is in vain. Used by `classic.py`."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio

T = TypeVar("T")


class Interruption:
    """One wait at a time."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None  # around the wait, while there is one

    async def unless(self, answer: Awaitable[T]) -> T | None:
        """The answer; None when the wait was ended before it came."""
        with anyio.CancelScope() as scope:
            self._scope = scope
            try:
                return await answer
            finally:
                self._scope = None
        return None

    def end(self) -> None:
        """Wait no longer, if anybody waits."""
        if self._scope is not None:
            self._scope.cancel()
