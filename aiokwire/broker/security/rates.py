"""How much of a quota is used: rates over sampled windows, and token buckets (KIP-13, KIP-599).

Times are seconds of the event loop's clock. The limit is an argument: it may change at any time.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

_SHORTEST: Final = 0.001  # seconds; a rate over less is not defined


class Counter(Protocol):
    """The use of one quota by one user, client id or address."""

    def is_idle(self, now: float) -> bool:
        """Whether it holds nothing that a new counter does not."""
        ...


class SampledRate:
    """A rate over the last windows (Java: `Rate` of a `SampledStat`)."""

    __slots__ = ("_samples", "_size", "_windows")

    def __init__(self, windows: int, size: float) -> None:
        """`windows`: how many are kept, the current one included; `size`: of each, in seconds."""
        self._windows = windows
        self._size = size
        self._samples: deque[list[float]] = deque()  # start and sum of each window, oldest first

    def record(self, value: float, now: float) -> None:
        """Add a value to the current window."""
        if not self._samples or now - self._samples[-1][0] >= self._size:
            self._samples.append([now, 0.0])
        self._samples[-1][1] += value

    def throttle(self, limit: float, now: float) -> float:
        """Return the seconds until the rate is down to `limit` per second; 0 if it is not above."""
        period = self._period(now)
        rate = sum(total for _, total in self._samples) / period
        return (rate - limit) / limit * period if rate > limit else 0.0

    def _period(self, now: float) -> float:
        """Return the seconds that the rate covers: windows that are not over yet count whole."""
        while self._samples and now - self._samples[0][0] >= self._windows * self._size:
            self._samples.popleft()
        elapsed = now - self._samples[0][0] if self._samples else 0.0
        missing = self._windows - 1 - int(elapsed / self._size)
        return max(elapsed + max(missing, 0) * self._size, _SHORTEST)

    def is_idle(self, now: float) -> bool:
        return not self._samples or now - self._samples[-1][0] >= self._windows * self._size


class TokenBucket:
    """Tokens that accrue up to a burst; one use may exceed them (Java: `TokenBucket`)."""

    __slots__ = ("_full_at", "_period", "_tokens", "_updated")

    def __init__(self, period: float) -> None:
        """`period`: the seconds in which a burst accrues. The bucket starts full."""
        self._period = period
        self._tokens: float | None = None
        self._updated = 0.0
        self._full_at = 0.0

    def tokens(self, limit: float, now: float) -> float:
        """Return the tokens left; fewer than 0 if more were taken than there were."""
        burst = limit * self._period
        if self._tokens is None:
            self._tokens = burst
        self._tokens = min(burst, self._tokens + max(0.0, now - self._updated) * limit)
        self._updated = now
        return self._tokens

    def take(self, count: float, limit: float, now: float) -> None:
        """Take tokens, whether or not there are enough."""
        self._tokens = self.tokens(limit, now) - count
        self._full_at = now + self._period - self._tokens / limit

    def throttle(self, limit: float, now: float) -> float:
        """Return the seconds until the tokens taken in excess have accrued; 0 if there are none."""
        return max(0.0, -self.tokens(limit, now) / limit)

    def is_idle(self, now: float) -> bool:
        return now >= self._full_at
