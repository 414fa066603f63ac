"""Go programs of the tests and benchmarks: built into `build/` on demand."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

from integration.kafka import MissingPrerequisite

_BUILD = Path(__file__).resolve().parents[1] / "build"
_SECONDS = 300


def has_go() -> bool:
    """Whether this machine can build programs."""
    return shutil.which("go") is not None


@functools.cache
def built(sources: Path, name: str) -> Path:
    """Return the program `build/<name>`, which is built if it is stale.

    Raises:
        MissingPrerequisite: Go is absent, or it could not build the program.
    """
    go = shutil.which("go")
    if go is None:
        raise MissingPrerequisite("Go 1.25 or newer, which builds the franz-go client")
    program = _BUILD / name
    command = [go, "build", "-buildvcs=false", "-o", str(program), "."]
    try:
        done = subprocess.run(command, cwd=sources, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise MissingPrerequisite(f"the franz-go client: its build took over {_SECONDS} s") from error
    if done.returncode:
        tail = " ".join(done.stderr.split())[-600:]
        raise MissingPrerequisite(f"the franz-go client: go build ended with status {done.returncode}: {tail}")
    return program
