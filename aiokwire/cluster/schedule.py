"""Decides when metadata is refreshed next, without I/O; `metadata.Metadata` carries it out.

    requested or too old --> due, not before the interval passed --> started --> succeeded, failed

The interval grows while consecutive refreshes change nothing, and while they fail. An urgent
request (for a new topic) ignores the interval, unless refreshes fail.
"""

from __future__ import annotations

import math

from aiokwire.backoff import Backoff


class RefreshSchedule:
    """Times are the loop's clock in seconds; `now` is an argument."""

    def __init__(self, *, min_interval: float, max_age: float, backoff: Backoff) -> None:
        self._min_interval = min_interval
        self._max_age = max_age
        self._backoff = backoff
        self._not_before = -math.inf
        self._stale_at = -math.inf  # when the metadata is too old
        self._quiet_at = -math.inf  # a request after this resets the interval
        self.reason: str | None = "start"  # why a refresh is requested; None if it is not
        self._urgent = False
        self._failing = False
        self.started: int = 0  # refreshes started; a request is served by one that starts after it
        self.finished: int = 0  # number of the last refresh that succeeded

    def request(self, reason: str, now: float, *, urgent: bool = False) -> int:
        """Request a refresh and return its number. Requests before it starts share it."""
        if self.reason is None:
            self.reason = reason
            if now >= self._quiet_at:
                self._backoff.reset()
        self._urgent = self._urgent or urgent
        return self.started + 1

    def due(self) -> float:
        """Return when the next refresh should start."""
        if self.reason is None:
            return self._stale_at
        return -math.inf if self._urgent and not self._failing else self._not_before

    def start(self) -> int:
        """Note that a refresh starts, and return its number."""
        self.reason = None
        self._urgent = False
        self.started += 1
        return self.started

    def succeeded(self, number: int, now: float, *, changed: bool) -> None:
        """Note that a refresh succeeded; `changed`: it changed the snapshot."""
        self.finished = number
        self._failing = False
        if changed:
            self._backoff.reset()
        self._wait(now)
        self._stale_at = now + self._max_age

    def failed(self, now: float) -> None:
        """Note that a refresh failed, and request another."""
        self._failing = True
        self.reason = self.reason or "the last refresh failed"
        self._wait(now)

    def _wait(self, now: float) -> None:
        pause = max(self._min_interval, self._backoff.next())
        self._not_before = now + pause
        self._quiet_at = now + 2 * pause
