"""The process of a Spark driver, which tests watch by the lines of JSON that it prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from integration.spark.cluster import wait_until

PATIENCE: Final = 300.0
"""Seconds for a step, on a busy machine."""


class Driver:
    """The process of a driver, in a directory with the environment.

    Its output is read from a file. `python` is the interpreter of Spark's Python processes.
    """

    def __init__(self, folder: Path, *command: str, python: str = "./environment/bin/python") -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
        environment["PYSPARK_PYTHON"] = python
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
        self._out = folder / "driver.out"
        self._errors = folder / "driver.err"
        with self._out.open("wb") as out, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                cwd=folder,
                env=environment,
                stdout=out,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def found(self) -> dict[str, Any]:
        """Return the results that it has printed so far."""
        results: dict[str, Any] = {}
        for line in self._out.read_text().splitlines():
            if line.startswith("{"):
                results |= json.loads(line)
        return results

    def wait_for(self, what: str) -> Any:
        """Wait for a result; raise AssertionError if it ends without it."""
        wait_until(lambda: what in self.found() or self.process.poll() is not None, PATIENCE, what)
        assert what in self.found(), self._errors.read_text()[-5000:]
        return self.found()[what]

    def end(self) -> dict[str, Any]:
        """Wait for its end and return its results; raise AssertionError if it failed."""
        assert self.process.wait(PATIENCE) == 0, self._errors.read_text()[-5000:]
        return self.found()

    def kill(self) -> None:
        """Kill it with its JVM."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
