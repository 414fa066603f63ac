"""What is handled twice, or never, after a client was killed: by the journals of both processes."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from integration.bench.workers.environments import ROOT, command_of
from integration.bench.workers.meter import IDLE_SECONDS, Job

_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 120.0 + IDLE_SECONDS
_POLL: Final = 0.01


@dataclass(frozen=True, slots=True)
class Outcome:
    """The records that were finished before the kill, those of them that were finished again, and
    those that neither process finished."""

    finished: int
    repeated: int
    lost: int


def compare(before: Iterable[str], after: Iterable[str], records: int) -> Outcome:
    """Compare the journals of both processes; a line cut off by the kill does not count."""
    first, second = _complete(before), _complete(after)
    return Outcome(len(first), len(first & second), records - len(first | second))


def _complete(lines: Iterable[str]) -> set[str]:
    return {line for line in lines if line.endswith("\n")}


def kill_one(job: Job, after: float) -> Outcome:
    """Run a job, kill it `after` seconds from its first record, run it again until it is idle."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("before", "after")]
        for path in paths:
            path.touch()
        log = Path(folder, "log")
        first = _start(replace(job, journal=str(paths[0])), log)
        try:
            _wait_for_first(first, paths[0], log)
            time.sleep(after)
        finally:
            first.kill()
            first.wait()
        second = _start(replace(job, journal=str(paths[1])), log)
        try:
            second.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # what is unfinished counts
        finally:
            second.kill()
            second.wait()
        with paths[0].open() as before, paths[1].open() as later:
            return compare(before, later, job.records)


def _start(job: Job, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as errors:
        return subprocess.Popen(command_of(job), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors)


def _wait_for_first(process: subprocess.Popen[bytes], journal: Path, log: Path) -> None:
    limit = time.perf_counter() + _START_SECONDS
    while not journal.stat().st_size:
        if process.poll() is not None or time.perf_counter() > limit:
            raise RuntimeError(f"{process.args!r} handled no record: {log.read_text(errors='replace')[-1500:]}")
        time.sleep(_POLL)
