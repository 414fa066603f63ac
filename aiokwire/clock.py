"""The wall clock, for timestamps in records; everything else uses the event loop's clock.

A loop that simulates time says what the wall shows by a method `wall_time()` (seconds since the epoch).
"""

from __future__ import annotations

import asyncio
import time


def wall_ms() -> int:
    """Milliseconds since the epoch, as the running loop sees them."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return time.time_ns() // 1_000_000
    wall_time = getattr(loop, "wall_time", None)
    if wall_time is not None:
        return int(wall_time() * 1000)
    return time.time_ns() // 1_000_000
