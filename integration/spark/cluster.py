"""Spark's standalone cluster as processes on loopback, whose workers cannot see the driver's venv.

Where permitted, the cluster runs in a mount namespace in which the venv of the tests is an empty
directory and PySpark is in another one, as on other machines: an executor that needs the driver's
files fails there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final, Self

import pyspark

from integration.kafka.fetch import java

_LOOK: Final = 0.1
_MASTER: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_JAVA: Final = ("-Xmx256m", *_SHORT_LIVED.split())

CONF: Final = {
    "spark.archives": "environment.tar.gz#environment",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": _SHORT_LIVED,
    "spark.executor.extraJavaOptions": _SHORT_LIVED,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""The options of a driver: those of the documentation, and settings that speed up short jobs."""


def wait_until(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Wait for the condition; raise AssertionError if it does not hold in time."""
    deadline = time.perf_counter() + seconds
    while not condition():
        assert time.perf_counter() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(_LOOK)


def can_hide() -> bool:
    """Whether this process may create a mount namespace and the tests run in a venv."""
    command = ["unshare", "-m", "mount", "--bind", "/tmp", "/tmp"]
    with contextlib.suppress(OSError):
        found = subprocess.run(command, capture_output=True, check=False).returncode == 0
        return found and sys.prefix != sys.base_prefix
    return False


class Cluster:
    """A master and workers of one core each; killed at the end of the block."""

    def __init__(self, folder: Path) -> None:
        self.address = ""
        self._folder = folder
        self._hides = can_hide()
        self._home = folder / "spark" if self._hides else Path(pyspark.__file__).parent
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        (self._folder / "spark").mkdir()
        (self._folder / "empty").mkdir()
        (self._folder / "local").mkdir()
        self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
        try:
            wait_until(lambda: _MASTER.search(self.log("master")), 60, "Spark's master")
        except AssertionError:
            self.close()
            raise
        found = _MASTER.search(self.log("master"))
        assert found
        self.address = found[1]
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start_worker(self, name: str) -> None:
        """Start a worker; raise AssertionError if it does not register with the master."""
        work = str(self._folder / name)
        options = ("--host", "127.0.0.1", "-c", "1", "-m", "1g", "-d", work, self.address)
        self._start(name, "org.apache.spark.deploy.worker.Worker", *options)
        wait_until(lambda: "Successfully registered with master" in self.log(name), 60, f"Spark's {name}")

    def kill(self, name: str) -> None:
        """Send SIGKILL to a daemon only, not to its executors."""
        self._processes[name].kill()
        self._processes[name].wait()

    def python_daemons(self) -> list[int]:
        """Return the Python daemons of the executors, which fork Spark's Python workers."""
        return [
            pid for pid, command, place in _processes() if "pyspark.daemon" in command and self._folder in place.parents
        ]

    @property
    def sessions(self) -> set[int]:
        """The session ids of its processes, which include executors and their Python workers."""
        return {process.pid for process in self._processes.values()}

    def log(self, name: str) -> str:
        """Return the log of a daemon."""
        return (self._folder / f"{name}.log").read_text()

    def close(self) -> None:
        """Send SIGKILL to all processes of the sessions that were started."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, name: str, main: str, *arguments: str) -> None:
        command = [java(), *_JAVA, "-cp", f"{self._home}/jars/*", main, "--webui-port", "0", *arguments]
        if self._hides:
            command = ["unshare", "-m", "sh", "-c", self._hidden(command)]
        environment = {"PATH": os.environ["PATH"], "SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": "127.0.0.1"}
        environment |= {"SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_DIRS": str(self._folder / "local"), **_java_home()}
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = _started(command, environment, log)

    def _hidden(self, command: list[str]) -> str:
        """Return shell code that hides the venv in a new namespace and execs the command."""
        return " && ".join(
            [
                shlex.join(["mount", "--bind", str(Path(pyspark.__file__).parent), str(self._home)]),
                shlex.join(["mount", "--bind", str(self._folder / "empty"), sys.prefix]),
                "exec " + shlex.join(command),
            ]
        )


def _java_home() -> dict[str, str]:
    return {"JAVA_HOME": os.environ["JAVA_HOME"]} if "JAVA_HOME" in os.environ else {}


def _started(command: list[str], environment: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )


def _processes() -> Iterator[tuple[int, str, Path]]:
    """Yield process ids with their commands and working directories."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            yield int(entry.name), command, (entry / "cwd").readlink()
