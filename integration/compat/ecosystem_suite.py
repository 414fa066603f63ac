"""Runs libraries that build on aiokafka on `aiokwire.compat.aiokafka`.

    python -m integration.compat.ecosystem_suite
    python -m integration.compat.ecosystem_suite 4.3.1 opentelemetry -- -k send

The tests of opentelemetry-instrumentation-aiokafka and taskiq-aio-kafka are those of their source
distributions. Tests of the instrumentation that mock aiokafka's internals are left out; in their
place `instrumented.py` has what they check, on records of a broker.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from integration.compat.aiokafka_suite import server_named
from integration.compat.environment import ROOT, python_with
from integration.compat.sources import copied, distribution

SERVER: Final = "TEST_KAFKA_URL"  # taskiq's variable
OURS: Final = Path(__file__).with_name("instrumented.py")


@dataclass(frozen=True)
class Suite:
    """The tests of a library's source distribution."""

    name: str
    version: str
    packages: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def home(self) -> str:
        """The name of its environment and of its copy."""
        return self.name.partition("-")[0]


SUITES: Final = (
    Suite(
        "opentelemetry-instrumentation-aiokafka",
        "0.66b1",
        ("opentelemetry-test-utils==0.66b1",),
        (
            "tests/test_utils.py",
            "tests/test_instrumentation.py::TestAIOKafkaInstrumentor",
            "tests/instrumented.py",
        ),
    ),
    # Of its lock file: partitioners of kafka-python 3 cannot be called, not by aiokafka either.
    Suite("taskiq-aio-kafka", "1.0.0", ("kafka-python==2.2.15",), ("tests",)),
)


def run(suite: Suite, broker: str, arguments: Sequence[str]) -> int:
    """Run a suite against a broker; return pytest's status."""
    python = python_with(f"{suite.name}=={suite.version}", *suite.packages, name=suite.home)
    directory = copied(distribution(suite.name, suite.version), suite.home)
    shutil.copy(OURS, directory / "tests")
    command = [str(python), "-m", "pytest", "-p", "integration.compat.replace_plugin", "-p", "no:aiokwire"]
    command += [
        "-p",
        "no:asyncio",
        "-p",
        "no:cacheprovider",
        "-q",
        "-rfE",
        "-c",
        "pyproject.toml",
        *suite.tests,
        *arguments,
    ]
    with closing(server_named(broker)) as server:
        server.start()
        environment = os.environ | {"PYTHONPATH": str(ROOT), SERVER: server.bootstrap_servers}
        return subprocess.run(command, cwd=directory, env=environment, check=False).returncode


def main(given: Sequence[str]) -> int:
    """Run as the module's docstring shows."""
    end = given.index("--") if "--" in given else len(given)
    broker, selected = (*given[:end], "", "")[:2]
    chosen = [suite for suite in SUITES if selected in suite.name]
    statuses = [run(suite, broker or "embedded", given[end + 1 :]) for suite in chosen]
    return max(statuses, default=2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
