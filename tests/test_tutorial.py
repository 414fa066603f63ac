"""The tutorial's service works: tests pass, processes serve, stop gracefully, and resume."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import httpx
import pytest
from anyio.streams.text import TextReceiveStream

from aiokwire.broker import Broker

TUTORIAL = Path(__file__).parents[1] / "docs" / "tutorial"
BLOCK = re.compile(r"^```(?:python|toml)\n(?:# (?P<name>\w+\.py)\n)?(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files that the tutorial prints, in their last version, and return their folder."""
    for page in sorted(TUTORIAL.glob("*.md")):
        for block in BLOCK.finditer(page.read_text()):
            if block["name"]:
                (tmp_path / block["name"]).write_text(block["text"])
            elif block["text"].startswith("[tool.pytest"):
                (tmp_path / "pyproject.toml").write_text(block["text"])
    return tmp_path


def test_the_tests_of_the_tutorial_pass(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_billing.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


@asynccontextmanager
async def process(folder: Path, servers: str, *command: str, ready: str) -> AsyncIterator[re.Match[str]]:
    """Run a command until it has printed what matches `ready`, then until it ends after SIGTERM."""
    environment = {**os.environ, "AIOKWIRE_BOOTSTRAP_SERVERS": servers}
    async with await anyio.open_process(
        [sys.executable, "-m", *command], cwd=folder, env=environment, stdout=None, stderr=subprocess.PIPE
    ) as running:
        yield await output_until(ready, running)
        running.send_signal(signal.SIGTERM)
        assert await running.wait() in {0, -signal.SIGTERM}  # uvicorn raises the signal again when it has stopped


async def output_until(pattern: str, running: anyio.abc.Process) -> re.Match[str]:
    assert running.stderr is not None
    text = ""
    with anyio.fail_after(30):
        async for part in TextReceiveStream(running.stderr):
            text += part
            if found := re.search(pattern, text):
                return found
    raise AssertionError(f"the process has ended: {text}")


@pytest.mark.timeout(90)
async def test_orders_become_invoices_once_although_the_worker_restarts(folder: Path) -> None:
    shop = ("uvicorn", "shop:app", "--port", "0")
    worker = ("aiokwire", "-v", "run", "billing:worker")
    async with Broker(topics={"orders": 4, "invoices": 1}) as broker:
        servers = broker.bootstrap_servers
        async with (
            process(folder, servers, *shop, ready=r"running on (http://[\d.:]+)") as found,
            httpx.AsyncClient(base_url=found[1]) as client,
        ):
            async with process(folder, servers, *worker, ready="assigned"):
                placed = await client.post("/orders", json={"id": 1, "customer": "alice", "amount": 19.9})
                assert placed.status_code == 201
                (invoice,) = await broker.wait_for_records("invoices", 1)
                assert (invoice.key, invoice.value) == (b"alice", b"order 1: 19.90")

            assert (await client.get("/readyz")).json()["ready"]
            await client.post("/orders", json={"id": 2, "customer": "alice", "amount": 5})
            async with process(folder, servers, *worker, ready="assigned"):
                invoices = await broker.wait_for_records("invoices", 2)
        assert [invoice.value for invoice in invoices] == [b"order 1: 19.90", b"order 2: 5.00"]
