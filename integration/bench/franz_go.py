"""franz-go, the Go client: the benchmark program in `go/`."""

from __future__ import annotations

from pathlib import Path

from integration.go_programs import built, has_go

__all__ = ["has_go", "program"]


def program() -> Path:
    """Build the program if it is stale; it takes a job and prints figures like `worker.py`.

    Raises:
        MissingPrerequisite: Go is absent, or it could not build the program.
    """
    return built(Path(__file__).resolve().parent / "go", "bench/franz-go")
