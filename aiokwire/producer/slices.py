"""Work for many partitions in slices, one per turn of the loop, so that other callbacks get their turns in between."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Final

# What fewer partitions ask for is done at once.
AT_ONCE: Final = 50
# Partitions that are settled in one turn.
SLICE: Final = 100
# The batches of one request, and the most that leave in one turn once a request is larger than `AT_ONCE`.
MOST_BATCHES: Final = 250


class Slices:
    """Jobs in the order in which they came: one step of the first one in each turn of the loop."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        """`call_soon(callback)` calls back in the loop's next turn."""
        self._call_soon = call_soon
        self._jobs: collections.deque[Iterator[None]] = collections.deque()
        self._scheduled = False

    def add(self, job: Iterator[None]) -> None:
        """Do the first step at once, unless other work was done in this turn."""
        self._jobs.append(job)
        if not self._scheduled:
            self._step()

    def _step(self) -> None:
        self._scheduled = bool(self._jobs)
        if not self._jobs:
            return
        self._call_soon(self._step)
        try:
            next(self._jobs[0])
        except StopIteration:
            self._jobs.popleft()
        except Exception:
            self._jobs.popleft()
            raise
