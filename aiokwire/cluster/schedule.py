"""When the metadata is refreshed next: a decision without I/O, which `metadata.Metadata` carries out.

    asked for, or as old as it may become --> due, but never sooner than the interval --> started --> done or failed

The interval grows while refreshes follow each other without bringing anything new, and while they fail. A request that
is urgent (a topic was named for the first time) does not wait for it, unless refreshes fail.
"""

from __future__ import annotations

import math

from aiokwire.backoff import Backoff


class RefreshSchedule:
    """Times are the loop's clock in seconds; `now` is handed in."""

    def __init__(self, *, min_interval: float, max_age: float, backoff: Backoff) -> None:
        self._min_interval = min_interval
        self._max_age = max_age
        self._backoff = backoff
        self._not_before = -math.inf
        self._stale_at = -math.inf  # when age alone asks for a refresh
        self._quiet_at = -math.inf  # a request after this finds a cluster at rest: the interval starts over
        self.reason: str | None = "start"  # why one is asked for; None when nobody asks
        self._urgent = False
        self._failing = False
        self.started = 0  # refreshes begun; each request is served by one begun after it
        self.finished = 0  # number of the last refresh that ended well

    def request(self, reason: str, now: float, *, urgent: bool = False) -> int:
        """Ask for a refresh; gives the number of the one that will serve it. Equal requests share one."""
        if self.reason is None:
            self.reason = reason
            if now >= self._quiet_at:
                self._backoff.reset()
        self._urgent = self._urgent or urgent
        return self.started + 1

    def due(self) -> float:
        """When the next one should start."""
        if self.reason is None:
            return self._stale_at
        return -math.inf if self._urgent and not self._failing else self._not_before

    def start(self) -> int:
        """One begins; gives its number."""
        self.reason = None
        self._urgent = False
        self.started += 1
        return self.started

    def succeeded(self, number: int, now: float, *, changed: bool) -> None:
        """One ended well; `changed` whether it brought anything new."""
        self.finished = number
        self._failing = False
        if changed:
            self._backoff.reset()
        self._wait(now)
        self._stale_at = now + self._max_age

    def failed(self, now: float) -> None:
        """One ended badly: it is asked for again."""
        self._failing = True
        self.reason = self.reason or "the last refresh failed"
        self._wait(now)

    def _wait(self, now: float) -> None:
        pause = max(self._min_interval, self._backoff.next())
        self._not_before = now + pause
        self._quiet_at = now + 2 * pause
