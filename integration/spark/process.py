"""A verb of `aiokwire spark` as a process of its own, to be stopped from outside: for the tests of audit and SQL."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

_PATIENCE = 300.0


class Ended(NamedTuple):
    """What came of it."""

    status: int
    out: str
    errors: str


class Verb:
    """Started at once, with its JVM in a process group of its own; ended with the block, whatever happens."""

    def __init__(self, folder: pathlib.Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "aiokwire", "spark", *arguments, "--master", "local[2]"]
        command += ["--conf", "spark.driver.memory=1g"]
        self._errors = folder / "stderr"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )

    def wait_until(self, condition: Callable[[str], bool]) -> None:
        """Wait until what it has said fulfils the condition.

        Raises: AssertionError: it has ended before.
        """
        deadline = time.perf_counter() + _PATIENCE
        while not condition(self._errors.read_text()):
            assert self._process.poll() is None, self._errors.read_text()
            assert time.perf_counter() < deadline, self._errors.read_text()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)

    def signal(self, number: signal.Signals) -> None:
        """To the verb, as a service manager does it, or as Ctrl-C does: its JVM gets that one, too."""
        if number is signal.SIGINT:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def end(self) -> Ended:
        """Wait for its end."""
        out, _ = self._process.communicate(timeout=_PATIENCE)
        return Ended(self._process.returncode, out, self._errors.read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def run(folder: pathlib.Path, *arguments: str) -> Ended:
    """A verb from its start to its end."""
    with Verb(folder, *arguments) as verb:
        return verb.end()
