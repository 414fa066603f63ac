"""Runs FastStream's tests of Kafka on `aiokwire.compat.aiokafka`.

    python -m integration.compat.faststream_suite embedded
    python -m integration.compat.faststream_suite 4.3.1 -- -k batch

The tests are those of the release in `sources.py`, unchanged; the broker listens on their port,
9092.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from integration.compat.aiokafka_suite import server_named
from integration.compat.environment import ROOT, python_with
from integration.compat.sources import FASTSTREAM, copied, unpacked

PACKAGES: Final = (
    f"faststream[kafka,cli]=={FASTSTREAM.tag}",
    "dirty-equals",
    "freezegun",
    "PyYAML",
    "pydantic-settings",
    "email-validator",
    "python-multipart",
    "fastapi",
    "httpx",
)
FOLDERS: Final = ("tests/brokers/kafka", "tests/docs/kafka", "tests/examples/kafka")
# It also imports other brokers of FastStream, which are not installed.
LEFT_OUT: Final = "--ignore=tests/brokers/kafka/test_misconfigure.py"

# Where FastStream's tests expect the broker.
PORT: Final = 9092


def run(broker: str, arguments: Sequence[str]) -> int:
    """Run the tests against a broker; return pytest's status."""
    python = python_with(*PACKAGES, name="faststream")
    with closing(server_named(broker, PORT)) as server:
        server.start()
        directory = copied(unpacked(FASTSTREAM), "faststream")
        command = [str(python), "-m", "pytest", "-p", "integration.compat.replace_plugin", "-p", "no:aiokwire"]
        command += ["-q", "-rfE", LEFT_OUT, "-p", "no:cacheprovider", "-o", "addopts=", "-m", "not slow"]
        chosen = [each for each in arguments if each.startswith("tests")]
        command += [*(chosen or FOLDERS), *(each for each in arguments if each not in chosen)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=directory, env=environment, check=False).returncode


def main() -> int:
    """Run as the module's docstring shows."""
    name, *rest = sys.argv[1:] or ["embedded"]
    return run(name, [each for each in rest if each != "--"])


if __name__ == "__main__":
    sys.exit(main())
