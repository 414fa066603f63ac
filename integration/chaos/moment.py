"""Points in time, and how long the machine had kept this process waiting for a core by then.

On a machine that others use too, a pause of the process is no pause of the program: both are told.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

_SCHEDULER = Path("/proc/self/schedstat")  # of the main thread, whose loop is measured


class Moment(NamedTuple):
    """Seconds."""

    at: float
    starved: float = 0.0  # since the process began


def now() -> Moment:
    """This moment, as the main thread sees it; elsewhere than on Linux it never starves."""
    starved = 0
    with contextlib.suppress(OSError):
        starved = int(_SCHEDULER.read_bytes().split()[1])
    return Moment(time.perf_counter(), starved / 1e9)
