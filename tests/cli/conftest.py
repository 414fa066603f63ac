"""A broker process shared by the tests of the command line."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from aiokwire.cli.main import cli


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data_dir = tmp_path_factory.mktemp("broker")
    arguments = ["--listen", "127.0.0.1:0", "--data-dir", str(data_dir), "--topic", "orders:3"]
    process = subprocess.Popen(
        [sys.executable, "-m", "aiokwire", "broker", *arguments], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().removeprefix("listening on ").strip()
    finally:
        process.terminate()
        assert process.wait(10) == 0
        process.stdout.close()


@pytest.fixture
def run(bootstrap: str) -> Callable[..., Result]:
    """Call the command line in this process."""

    def call(*arguments: str | Path) -> Result:
        return CliRunner().invoke(cli, [str(part) for part in arguments], env={"AIOKWIRE_BOOTSTRAP": bootstrap})

    return call


@pytest.fixture(autouse=True)
def level_of_outages() -> Iterator[None]:
    """Restore the level that commands set for the log lines of outages."""
    logger = logging.getLogger("aiokwire.cluster.nodes")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """Restore SIGINT: background jobs of a shell ignore it, and so do their child processes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def topic(run: Callable[..., Result], request: pytest.FixtureRequest) -> str:
    """Create a topic for this test, with two partitions."""
    name = f"t-{request.node.name[:80].replace('[', '.').replace(']', '')}"
    result = run("topics", "create", name, "--partitions", "2")
    assert result.exit_code == 0, result.output
    return name
