"""What is done about an answer that is late. Used by the fetcher and the upkeep, around what they wait for.

A broker that hangs, or whose network drops packets, keeps its connection and says nothing, while the cluster has others
lead its partitions. The request's own time-out is far too long to find that out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Self

# An answer is overdue so long (seconds) after the broker should have given it; it is again after as much more.
OVERDUE: Final = 1.0


class Overdue:
    """A block in which an answer is waited for; `act` is called when it is overdue, and again and again after that."""

    __slots__ = ("_act", "_loop", "_timer", "_wait")

    def __init__(self, wait: float, act: Callable[[], None]) -> None:
        """`wait`: seconds that the broker may take by what it was asked."""
        self._wait = wait
        self._act = act
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        self._timer = self._loop.call_later(self._wait + OVERDUE, self._fire)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._timer.cancel()

    def _fire(self) -> None:
        self._timer = self._loop.call_later(OVERDUE, self._fire)
        self._act()
