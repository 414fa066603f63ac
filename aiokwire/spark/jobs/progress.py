"""The progress of a job (a line that updates on a terminal, else periodic lines), and its summary.

Progress is written to stderr, the summary to stdout.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TextIO

from aiokwire.spark.jobs.stopping import tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Interval between lines that cannot be overwritten, and between those that can (seconds).
SELDOM: Final = 5.0
OFTEN: Final = 0.2


class Progress:
    """Shows the progress of a job. `quiet`, the default of the functions, shows nothing."""

    def __init__(self, title: str, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._title = title
        self._quiet = quiet
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty()
        self._began = time.perf_counter()
        self._shown = -float("inf")
        self._width = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def update(self, done: int | None = None, total: int | None = None, note: str = "") -> None:
        """Show the progress, unless the last line is too recent."""
        now = time.perf_counter()
        if self._quiet or now - self._shown < (OFTEN if self._terminal else SELDOM):
            return
        self._shown = now
        self._write(line(self._title, now - self._began, done, total, note))

    def _write(self, text: str) -> None:
        if self._terminal:
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Clear the line on a terminal."""
        if self._terminal and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


def watch(spark: SparkSession, progress: Progress, what: str) -> Callable[[], None]:
    """Return a `tick` for `Stop.job` that shows the finished tasks of running stages."""

    def tick() -> None:
        done, total = tasks(spark)
        progress.update(done, total or None, note=what)

    return tick


def line(title: str, seconds: float, done: int | None, total: int | None, note: str) -> str:
    """Format a line: `archive: 40%, 400,000 of 1,000,000, 12 s, second round`."""
    parts = []
    if done is not None and total:
        parts.append(f"{100 * done // total}%")
    if done is not None:
        parts.append(f"{done:,}" if total is None else f"{done:,} of {total:,}")
    parts.append(f"{seconds:.0f} s")
    if note:
        parts.append(note)
    return f"{title}: {', '.join(parts)}"


def print_summary(summary: object, *, as_json: bool = False) -> None:
    """Print a dataclass as one JSON document, or as a line for each field."""
    fields = dataclasses.asdict(summary)  # type: ignore[call-overload]  # every summary is a dataclass
    if as_json:
        print(json.dumps(fields, default=str, ensure_ascii=False))
        return
    for text in lines(fields):
        print(text)


def lines(fields: Mapping[str, Any]) -> Iterable[str]:
    """Format a summary as aligned lines."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        yield f"{name.replace('_', ' '):<{width}}  {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_text(each)}" for key, each in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(each) for each in value) or "none"
    return "none" if value is None else str(value)
