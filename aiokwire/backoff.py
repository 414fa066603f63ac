"""Exponential backoff with jitter (KIP-580, KIP-144), and deadlines on the loop's clock."""

from __future__ import annotations

import math
import random

from aiokwire.clock import loop_time
from aiokwire.errors import RequestTimedOut

LOGGED_ATTEMPTS = (1, 5, 20)


class Backoff:
    """Delays in seconds from `initial` up to `maximum`, each varied by up to `jitter` both ways."""

    def __init__(
        self,
        initial: float,
        maximum: float,
        *,
        factor: float = 2.0,
        jitter: float = 0.2,
        rng: random.Random,
    ) -> None:
        self._initial = initial
        self._maximum = max(initial, maximum)
        self._factor = factor
        self._jitter = jitter
        self._rng = rng
        self.attempts: int = 0  # delays since the last reset
        self._has_warned = False  # since the last reset

    def next(self) -> float:
        """Return the next delay."""
        # The exponent is bounded: a client that retries for weeks must not overflow a float.
        delay = min(self._maximum, self._initial * self._factor ** min(self.attempts, 64))
        self.attempts += 1
        return delay * self._rng.uniform(1.0 - self._jitter, 1.0 + self._jitter)

    @property
    def is_worth_logging(self) -> bool:
        """Whether to log this attempt: the first, the 5th, the 20th, and every 100th."""
        return self.attempts in LOGGED_ATTEMPTS or self.attempts % 100 == 0

    def take_warning(self) -> bool:
        """Return True once between resets: a failure that may last is a WARNING in one line."""
        has_warned, self._has_warned = self._has_warned, True
        return not has_warned

    def reset(self) -> None:
        """Start again with the initial delay, after a success."""
        self.attempts = 0
        self._has_warned = False


class Deadline:
    """A time on the loop's clock by which an operation must finish."""

    __slots__ = ("_started", "at", "what")

    def __init__(self, timeout: float | None, what: str) -> None:
        """`timeout`: seconds (None: without a limit); `what` names the operation in the error."""
        self._started = loop_time()
        self.at: float = math.inf if timeout is None else self._started + timeout
        self.what: str = what

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - loop_time())

    @property
    def elapsed(self) -> float:
        """Seconds since its creation."""
        return loop_time() - self._started

    @property
    def expired(self) -> bool:
        return loop_time() >= self.at

    def check(self, last_error: BaseException | None = None) -> None:
        """Raise if the deadline has passed.

        Raises: RequestTimedOut: names the operation, its duration and the last error.
        """
        if self.expired:
            raise self.error(last_error)

    def error(self, last_error: BaseException | None = None) -> RequestTimedOut:
        """Return the error of a deadline that has passed."""
        tail = f"; last error: {last_error}" if last_error is not None else ""
        error = RequestTimedOut(f"{self.what}: did not succeed within {self.elapsed:.3f} s{tail}")
        error.__cause__ = last_error
        return error
