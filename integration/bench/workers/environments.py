"""The environments of the clients: a venv for each peer in Python, compiled classes for Java.

They are made once in `build/bench` of the checkout; nothing is installed where the tests run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from integration.bench.workers.meter import Job, arguments_of
from integration.bench.workers.plan import BARE, SUBJECT
from integration.kafka.fetch import MissingPrerequisite, java, libs

ROOT: Final = Path(__file__).resolve().parents[3]
_BUILD: Final = ROOT / "build" / "bench"
_PARALLEL: Final = "parallel-consumer"
_PARALLEL_LIBS: Final = "parallel-consumer-0.5.3.2"
_SOURCE: Final = Path(__file__).with_name("Parallel.java")
# The releases of the figures in docs/performance.md.
PACKAGES: Final = {
    "aiokafka": ("aiokafka==0.14.0", "uvloop==0.23.0"),
    "faststream": ("faststream[kafka]==0.7.8", "aiokafka==0.14.0", "uvloop==0.23.0"),
    "faust": ("faust-streaming==0.15.3", "aiokafka==0.14.0", "uvloop==0.23.0"),
}
_INSTALL_SECONDS: Final = 600


def command_of(job: Job) -> list[str]:
    """Return the command of a job; its environment is made if it is missing.

    Raises: MissingPrerequisite: packages or jars cannot be downloaded, or there is no JDK.
    """
    if job.client == _PARALLEL:
        path = os.pathsep.join((f"{libs(_PARALLEL_LIBS)}/*", str(_classes())))
        return [java(), "-Xmx512m", "-cp", path, "Parallel", *arguments_of(job)]
    return [str(_python(job.client)), "-m", f"integration.bench.workers.clients.{job.client}", *arguments_of(job)]


def _python(client: str) -> Path:
    """Return the interpreter of a client."""
    if client in (SUBJECT, BARE):
        return Path(sys.executable)
    folder = _BUILD / client
    python, stamp, wanted = folder / "bin" / "python", folder / "installed", "\n".join(PACKAGES[client])
    if not stamp.exists() or stamp.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        _run([str(python), "-m", "pip", "install", "-q", *PACKAGES[client]], f"the packages of {client}")
        stamp.write_text(wanted)
    return python


def _classes() -> Path:
    """Return the folder of the compiled Java program."""
    folder = _BUILD / "java"
    compiled = folder / "Parallel.class"
    if not compiled.exists() or compiled.stat().st_mtime < _SOURCE.stat().st_mtime:
        compiler = shutil.which("javac")
        if compiler is None:
            raise MissingPrerequisite("javac: install a JDK 17 or newer")
        _run([compiler, "-d", str(folder), "-cp", f"{libs(_PARALLEL_LIBS)}/*", str(_SOURCE)], "the Java program")
    return folder


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    if done.returncode:
        raise MissingPrerequisite(f"{what}: {' '.join((done.stdout + done.stderr).split())[-600:]}")
