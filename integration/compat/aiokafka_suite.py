"""Runs aiokafka's own tests on `aiokwire.compat.aiokafka`.

    python -m integration.compat.aiokafka_suite embedded
    python -m integration.compat.aiokafka_suite 4.3.1 -- -k transaction

The broker has listeners with and without TLS and SASL, and ACLs. The two tests of GSSAPI need a
KDC: `python -m integration.kafka.secure_kerberos` installs one.
The tests are those of the release in `sources.py`; only their conftest, which starts Docker, is
replaced by `suite_plugin.py`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from integration.compat.environment import ROOT, python_with
from integration.compat.sources import AIOKAFKA, copied, unpacked
from integration.compat.suite_broker import SuiteEmbedded, SuiteKafka, described
from integration.compat.suite_plugin import SERVER
from integration.embedded import EmbeddedProcess
from integration.kafka import KafkaServer, RealKafka

SETTINGS: Final = {"num.partitions": 2, "auto.create.topics.enable": "true"}


def server_named(name: str, port: int = 0) -> KafkaServer:
    """Return the embedded broker, or Kafka of a release; with `port` on that one."""
    if name != "embedded":
        return RealKafka(name, settings=SETTINGS, port=port)
    server = EmbeddedProcess(settings=SETTINGS)
    server.port = port or server.port
    return server


def prepared() -> Path:
    """Return a copy of the tests without their conftest."""
    target = copied(unpacked(AIOKAFKA), "aiokafka")
    (target / "tests" / "conftest.py").unlink()
    return target


def run(broker: str, arguments: Sequence[str]) -> int:
    """Run the tests against a broker; return pytest's status."""
    directory = prepared()
    python = python_with("pytest-mock")
    command = [str(python), "-m", "pytest", "-p", "integration.compat.suite_plugin", "-p", "no:aiokwire", "-q", "-rfE"]
    command += ["-c", os.devnull, "--rootdir", str(directory), "--timeout", "150", "-p", "no:cacheprovider"]
    chosen = [each for each in arguments if each.startswith("tests")] or ["tests"]
    command += [*chosen, *(each for each in arguments if not each.startswith("tests"))]
    with closing(SuiteEmbedded() if broker == "embedded" else SuiteKafka(broker)) as server:
        server.start()
        environment = os.environ | {SERVER: described(server.access), "PYTHONPATH": str(ROOT)}
        if server.access.kerberos is not None:
            environment["KRB5_CONFIG"] = str(server.access.kerberos_config)
            environment["KRB5CCNAME"] = f"FILE:{server.access.kerberos.cache}"
        return subprocess.run(command, cwd=directory, env=environment, check=False).returncode


def main() -> int:
    """Run as the module's docstring shows."""
    name, *rest = sys.argv[1:] or ["embedded"]
    return run(name, [each for each in rest if each != "--"])


if __name__ == "__main__":
    sys.exit(main())
