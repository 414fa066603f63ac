"""Whether the application goes on: without progress for max_poll_interval_ms its member has to leave. Used by the
heartbeats of both protocols.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio

from aiokwire.group.heartbeat_thread import HeartbeatThread

# The longest time between two looks at the application's progress (seconds).
LOOK: Final = 3.0


class PollIntervalCheck:
    """The application's progress, as far as it was noticed."""

    def __init__(self, pulse: HeartbeatThread, progressed_at: Callable[[float], float], limit: float) -> None:
        """`progressed_at`: when there was progress, given the time; `limit` in seconds."""
        self._pulse = pulse
        self._progressed_at = progressed_at
        self._limit = limit
        self._noticed = 0.0  # the progress that the pulse was told of

    def look(self) -> float:
        """How long the application may go on without progress; the pulse is told of what there was."""
        now = anyio.current_time()
        at = self._progressed_at(now)
        if at > self._noticed:
            self._noticed = at
            self._pulse.record_poll()
        return at + self._limit - now
