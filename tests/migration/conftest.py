"""A broker process, and a way to run a program against it."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from aiokwire import Admin

Run = Callable[..., str]


@pytest.fixture(scope="session")
def servers() -> Iterator[str]:
    command = [sys.executable, "-m", "aiokwire", "broker", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().removeprefix("listening on ").strip()
    finally:
        process.terminate()
        assert process.wait(10) == 0
        process.stdout.close()


@pytest.fixture
def run_program(servers: str, request: pytest.FixtureRequest) -> Run:
    """Run a program with a new topic of two partitions; return what it prints."""
    numbers = itertools.count()

    def run(text: str, *options: str) -> str:
        topic = f"{abs(hash(request.node.name)):x}-{next(numbers)}"
        asyncio.run(_create(servers, topic))
        environment = {**os.environ, "SERVERS": servers, "TOPIC": topic}
        done = subprocess.run(
            [sys.executable, *options, "-c", text], env=environment, capture_output=True, text=True, timeout=50,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


async def _create(servers: str, topic: str) -> None:
    async with Admin(servers) as admin:
        await admin.create_topic(topic, 2)
