"""A command of `aiokwire spark` in its own process, which tests stop or kill."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

_PATIENCE: Final = 300.0
_LOOK: Final = 0.02


class Ended(NamedTuple):
    """The result of a process."""

    status: int
    out: str
    errors: str


class Verb:
    """A running command with its JVM in its own process group; killed at the end of the block."""

    def __init__(self, folder: pathlib.Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "aiokwire", "spark", *arguments, "--master", "local[2]"]
        command += ["--conf", "spark.driver.memory=1g"]
        self._errors = folder / "stderr"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )

    def check(self) -> None:
        """Raise AssertionError with its stderr if it has ended."""
        status = self._process.poll()
        assert status is None, f"ended with status {status}: {self._errors.read_text()[-3000:]}"

    def wait_until(self, condition: Callable[[str], bool]) -> None:
        """Wait until the condition holds for its stderr.

        Raises: AssertionError: it ended before.
        """
        deadline = time.perf_counter() + _PATIENCE
        while not condition(self._errors.read_text()):
            self.check()
            assert time.perf_counter() < deadline, self._errors.read_text()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_LOOK)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the command as a service manager does.

        SIGINT also to its JVM, as Ctrl-C does.
        """
        if number is signal.SIGINT:
            os.killpg(self._process.pid, number)
        else:
            self._process.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL to the command, its JVM and its workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> Ended:
        """Wait for its end and return the result."""
        out, _ = self._process.communicate(timeout=_PATIENCE)
        return Ended(self._process.returncode, out, self._errors.read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._process.communicate()


def run(folder: pathlib.Path, *arguments: str) -> Ended:
    """Run a command to its end."""
    with Verb(folder, *arguments) as verb:
        return verb.end()


def summary(folder: pathlib.Path, *arguments: str) -> dict[str, Any]:
    """Run a command to its successful end and return its summary."""
    ended = run(folder, *arguments, "--json")
    assert ended.status == 0, ended.errors[-3000:]
    found: dict[str, Any] = json.loads(ended.out)
    return found


def stopped(
    folder: pathlib.Path, *arguments: str, by: signal.Signals = signal.SIGTERM, when: Callable[[str], bool]
) -> Ended:
    """Run a command that gets a signal when a condition holds; see `Verb.wait_until`."""
    with Verb(folder, *arguments) as verb:
        verb.wait_until(when)
        verb.signal(by)
        return verb.end()
