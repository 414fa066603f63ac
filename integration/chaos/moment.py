"""Points in time, with the time that this process had waited for a CPU core by then.

On a shared machine, a pause of the process is not a pause of the program: both are measured.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

_SCHEDULER = Path("/proc/self/schedstat")  # of the main thread, which runs the loop


class Moment(NamedTuple):
    """A point in time, in seconds."""

    at: float
    starved: float = 0.0  # since the process began


def now() -> Moment:
    """Return the current moment of the main thread; `starved` is 0 except on Linux."""
    starved = 0
    with contextlib.suppress(OSError):
        starved = int(_SCHEDULER.read_bytes().split()[1])
    return Moment(time.perf_counter(), starved / 1e9)
