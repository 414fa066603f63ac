"""The wall clock, for timestamps in records; everything else uses the event loop's clock.

A loop that simulates time has a method `wall_time()`, which returns seconds since the epoch.
"""

from __future__ import annotations

import asyncio
import time


def wall_ms() -> int:
    """Return milliseconds since the epoch, by the running loop's wall clock if it has one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return time.time_ns() // 1_000_000
    wall_time = getattr(loop, "wall_time", None)
    if wall_time is not None:
        return int(wall_time() * 1000)
    return time.time_ns() // 1_000_000
