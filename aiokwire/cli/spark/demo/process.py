"""The demo's pipeline: `aiokwire spark run` as a process, with the JVM that it starts."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

from aiokwire.errors import KafkaError

DECLARATION = Path(__file__).with_name("hourly_delays.toml")
LEAST_JAVA = 17


class PipelineFailed(KafkaError):
    """The pipeline failed; the message has its error."""


class PipelineProcess:
    """A run in its own process session, so that all of its processes can be killed at once."""

    def __init__(self, bootstrap: str, output: Path, number: int) -> None:
        self.log: Path = output / f"run-{number}.log"
        self._summary = output / f"run-{number}.json"
        self._command = [
            sys.executable, "-m", "aiokwire", "spark", "run", str(DECLARATION), "--master", "local[2]", "--json",
            "--set", f"brokers={bootstrap}", "--set", f"checkpoint={output / 'checkpoint'}",
            "--conf", "spark.driver.memory=1g", "--conf", "spark.ui.showConsoleProgress=false",
        ]  # fmt: skip
        self._process: Process | None = None

    async def start(self) -> None:
        """Start the process; its output is written to its log."""
        with self.log.open("wb") as log, self._summary.open("wb") as summary:
            self._process = await anyio.open_process(
                self._command, stdin=subprocess.DEVNULL, stdout=summary, stderr=log, start_new_session=True
            )

    @property
    def ended(self) -> bool:
        return self._process is None or self._process.returncode is not None

    async def finish(self) -> dict[str, Any]:
        """Wait for the end, and return the summary.

        Raises: PipelineFailed: the exit status is not 0.
        """
        assert self._process is not None
        if await self._process.wait():
            error = last_error(self.log.read_text(errors="replace"))
            raise PipelineFailed(f"the pipeline ended with {self._process.returncode}: {error} (its log is {self.log})")
        summary: dict[str, Any] = json.loads(self._summary.read_text())
        return summary

    async def kill(self) -> None:
        """Kill the driver and its JVM with SIGKILL: nothing is flushed or closed."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with anyio.CancelScope(shield=True):
                await self._process.wait()
                await self._process.aclose()
            self._process = None


def last_error(log: str) -> str:
    """Return the error that a verb ended with, else its last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or ["it printed nothing"])[-1]


def java_problem() -> str | None:
    """Return the reason why Spark cannot start; None if it can."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    needs = f"Spark needs Java {LEAST_JAVA} or newer (Debian: apt-get install openjdk-17-jre-headless)"
    if java is None:
        return f"{needs}: java was not found in {f'JAVA_HOME, {home}' if home else 'PATH'}"
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    version = java_version(output.stderr + output.stdout)
    if version is None or version < LEAST_JAVA:
        return f"{needs}: {java} is {'of unknown version' if version is None else f'Java {version}'}"
    return None


def java_version(output: str) -> int | None:
    """Parse the major version from the output of `java -version`."""
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return None if match is None else int(match[1])
