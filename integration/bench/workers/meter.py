"""What one client process does and measures; it imports the standard library only.

A process calls its handler until the window of measurement has passed, prints its figures, and ends
without closing its client.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_POLL = 0.005  # seconds
_FIRST_RECORD_SECONDS = 40.0
# A loop that is never idle releases the GIL in every turn, for less time than a thread takes to wake up, and a thread
# that was woken for nothing waits a whole interval again: with the default of 5 ms it starves.
_SWITCH_SECONDS = 5e-5
# A process that writes a journal ends when it has not handled a record for this time (seconds): more than a slow one.
IDLE_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one process.

    Args:
        handler_ms: the time that a handler waits.
        concurrency: the most handlers that run at a time.
        records: the number of records in the topic.
        warm_up: seconds from the first record to the window; `seconds`: the window.
        journal: a file for the records that were handled, one `partition offset` per line; then
            the process has no window and ends when it is idle.
        slow_every, slow_ms: offsets that are multiples of the first take the second instead.
    """

    client: str
    bootstrap: str
    topic: str
    group: str
    handler_ms: float
    concurrency: int
    records: int
    warm_up: float = 1.0
    seconds: float = 2.0
    journal: str = ""
    slow_every: int = 0
    slow_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of a process: records handled in `seconds`, CPU seconds, peak memory in MiB."""

    count: int
    seconds: float
    cpu: float
    peak_mib: float


def given_job() -> Job:
    """Return the job of this process, from its command line: `name=value` for each field."""
    given: dict[str, Any] = dict(each.split("=", 1) for each in sys.argv[1:])
    return Job(**{name: _typed(name, value) for name, value in given.items()})


def arguments_of(job: Job) -> list[str]:
    """Return the command-line arguments of a job."""
    return [f"{name}={value}" for name, value in asdict(job).items()]


def _typed(name: str, value: str) -> Any:
    kind = Job.__annotations__[name]
    return int(value) if kind == "int" else float(value) if kind == "float" else value


class Meter:
    """Counts handled records; a thread waits for the window and ends the process."""

    __slots__ = ("_journal", "count", "job")

    def __init__(self, job: Job) -> None:
        self.count = 0
        self.job = job
        self._journal = os.open(job.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if job.journal else -1
        sys.setswitchinterval(_SWITCH_SECONDS)
        threading.Thread(target=self._measure, daemon=True).start()

    def handler(self) -> Callable[[Any], Awaitable[None]]:
        """Return the handler of a record, which has `partition` and `offset`."""
        job, delay = self.job, self.job.handler_ms / 1e3

        async def count_only(record: Any) -> None:
            self.count += 1

        async def wait(record: Any) -> None:
            await asyncio.sleep(delay)  # noqa: TID251 - what people write
            self.count += 1

        async def wait_and_note(record: Any) -> None:
            is_slow = job.slow_every and record.offset % job.slow_every == 0
            await asyncio.sleep(job.slow_ms / 1e3 if is_slow else delay)  # noqa: TID251 - what people write
            os.write(self._journal, b"%d %d\n" % (record.partition, record.offset))
            self.count += 1

        return wait_and_note if job.journal else wait if delay else count_only

    def _measure(self) -> None:
        try:
            self._wait_for_first()
            if self.job.journal:
                self._wait_until_idle()
            else:
                print(json.dumps(asdict(self._window())), flush=True)
        except BaseException as error:  # the process ends
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)

    def _wait_for_first(self) -> None:
        limit = time.perf_counter() + _FIRST_RECORD_SECONDS
        while not self.count:
            if time.perf_counter() > limit:
                raise RuntimeError(f"no record within {_FIRST_RECORD_SECONDS} s")
            time.sleep(_POLL)

    def _window(self) -> Figures:
        time.sleep(self.job.warm_up)
        began, cpu, count = time.perf_counter(), _cpu(), self.count
        now = began
        while now < began + self.job.seconds and self.count < self.job.records:
            time.sleep(_POLL)
            now = time.perf_counter()
        if count >= self.job.records:
            raise RuntimeError(f"all {self.job.records} records were handled before the window: write more")
        return Figures(self.count - count, now - began, _cpu() - cpu, _peak_mib())

    def _wait_until_idle(self) -> None:
        count = -1
        while count != self.count:
            count = self.count
            time.sleep(IDLE_SECONDS)


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0
