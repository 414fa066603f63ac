"""franz-go, the Go client: the benchmark program in `go/`, built into `build/` on demand."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from integration.kafka import MissingPrerequisite

_SOURCES = Path(__file__).resolve().parent / "go"
_PROGRAM = _SOURCES.parents[2] / "build" / "bench" / "franz-go"
_BUILD_SECONDS = 300


def has_go() -> bool:
    """Whether this machine can build the program."""
    return shutil.which("go") is not None


@functools.cache
def program() -> Path:
    """Build the program if it is stale; it takes a job and prints figures like `worker.py`.

    Raises:
        MissingPrerequisite: Go is absent, or it could not build the program.
    """
    go = shutil.which("go")
    if go is None:
        raise MissingPrerequisite("Go 1.25 or newer, which builds the franz-go client")
    command = [go, "build", "-buildvcs=false", "-o", str(_PROGRAM), "."]
    try:
        done = subprocess.run(
            command, cwd=_SOURCES, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise MissingPrerequisite(f"the franz-go client: its build took over {_BUILD_SECONDS} s") from error
    if done.returncode:
        tail = " ".join(done.stderr.split())[-600:]
        raise MissingPrerequisite(f"the franz-go client: go build ended with status {done.returncode}: {tail}")
    return _PROGRAM
