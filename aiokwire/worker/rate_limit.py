"""Rate limits: how many calls of handlers may start in a second."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Callable
from typing import Final

from aiokwire.config import require_int, require_number
from aiokwire.loop_timer import LoopTimer

# Seconds by which a timer may fire early. They do not add up: the next call is that much later.
_EARLY: Final = 1e-6
# The longest time (seconds) between two calls.
_LONGEST_INTERVAL: Final = 86_400


@dataclasses.dataclass(frozen=True, eq=False)
class RateLimit:
    """A limit of the calls that start per second. Handlers with the same object share it.

    In any period of T seconds at most `burst + per_second * T` calls start, retries included.
    Waiting calls do not count towards the concurrency.

    Raises: ConfigurationError: a value is out of its range.
    """

    per_second: float
    """Calls per second of one worker; 0.5 is one call every two seconds."""
    burst: int | None = None
    """The calls that may start at once after a pause. None: a tenth of a second's calls, at least one."""

    def __post_init__(self) -> None:
        require_number("per_second", self.per_second, minimum=1 / _LONGEST_INTERVAL, maximum=1e9)
        if self.burst is not None:
            require_int("burst", self.burst, minimum=1)

    @property
    def most_at_once(self) -> int:
        """`burst`, or its default."""
        return self.burst if self.burst is not None else max(1, math.floor(self.per_second / 10))


class RateLimiter:
    """A gate that lets calls pass at a rate (the generic cell rate algorithm)."""

    def __init__(self, limit: RateLimit, on_ready: Callable[[], object]) -> None:
        """`on_ready` is called when a call that had to wait may start."""
        loop = asyncio.get_running_loop()
        self._interval = 1 / limit.per_second
        self._tolerance = (limit.most_at_once - 1) * self._interval
        self._clock = loop.time
        self._timer = LoopTimer(loop, on_ready)
        self._due = -math.inf  # when the next call is due

    @property
    def admits(self) -> bool:
        """Whether a call may start now; if not, `on_ready` is called later."""
        opens = self._due - self._tolerance
        if opens <= self._clock() + _EARLY:
            return True
        self._timer.set(opens)
        return False

    def enter(self) -> None:
        """Count a call that starts."""
        self._due = max(self._due, self._clock()) + self._interval

    def close(self) -> None:
        """Do not call back."""
        self._timer.cancel()
