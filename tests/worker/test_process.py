"""A worker as a process: signals stop it in order, its exit code shows how it ended."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import pytest

from aiokwire.broker import Broker
from aiokwire.testing.threaded import ThreadedBroker
from tests.worker import workers

PROGRAM = """
import asyncio, sys
import aiokwire

worker = aiokwire.Worker(
    sys.argv[1], group_id="billing", delivery=sys.argv[2], shutdown_timeout_ms=float(sys.argv[3]), linger_ms=0,
    retry=aiokwire.RetryPolicy(attempts=1, then="stop"),
)

@worker.handler("orders")
async def handle(value: str, context: aiokwire.Context) -> None:
    print("started", value, flush=True)
    try:
        if value == "fails":
            raise ValueError("broken")
        if value == "exits":
            sys.exit(3)
        while value in ("slow", "ending") and not context.is_stopping:
            await asyncio.sleep(0.001)
        if value == "slow":
            print("stopping", flush=True)
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("cancelled", value, flush=True)
        raise
    print("finished", value, flush=True)

asyncio.run(worker.run())
"""


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 1}}


class Process:
    """A running worker, and its lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._process = process
        self._lines: IO[str] = process.stdout

    def read(self, *expected: str) -> None:
        """Read until each of the lines has come."""
        missing = set(expected)
        while missing:
            line = self._lines.readline()
            assert line, f"the worker ended before {missing}"
            missing.discard(line.strip())

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Return the exit code and the errors."""
        _, errors = self._process.communicate(timeout=30)
        return self._process.returncode, errors


@contextmanager
def running(
    broker: ThreadedBroker, *values: str, delivery: str = "at-least-once", patience: float = 60_000
) -> Iterator[Process]:
    asyncio.run(workers.fill(cast("Broker", broker), *(f"{value}:{value}" for value in values)))
    arguments = [sys.executable, "-c", PROGRAM, broker.bootstrap_servers, delivery, str(patience)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


def committed(broker: ThreadedBroker) -> int:
    return asyncio.run(workers.committed(cast("Broker", broker))).offset


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_when_running_handlers_have_finished(
    kafka_broker: ThreadedBroker, number: signal.Signals, delivery: str
) -> None:
    with running(kafka_broker, "a", "ending", "b", delivery=delivery) as process:
        process.read("started ending", "finished b")
        process.signal(number)
        process.read("finished ending")
        code, errors = process.end()
    assert (code, errors) == (0, "")
    assert committed(kafka_broker) == 3


def test_a_second_signal_cancels_the_handlers(kafka_broker: ThreadedBroker) -> None:
    with running(kafka_broker, "a", "slow", "b") as process:
        process.read("started slow", "finished b")
        process.signal(signal.SIGTERM)
        process.read("stopping")
        process.signal(signal.SIGTERM)
        process.read("cancelled slow")
        code, errors = process.end()
    assert code == 0
    assert "1 handler(s) were cancelled" in errors
    assert committed(kafka_broker) == 1


def test_handlers_are_cancelled_when_the_shutdown_takes_too_long(kafka_broker: ThreadedBroker) -> None:
    with running(kafka_broker, "a", "slow", patience=10) as process:
        process.read("started slow")
        process.signal(signal.SIGTERM)
        process.read("cancelled slow")
        assert process.end()[0] == 0
    assert committed(kafka_broker) == 1


def test_a_policy_that_stops_the_worker_fails_the_process(kafka_broker: ThreadedBroker) -> None:
    with running(kafka_broker, "a", "fails") as process:
        code, errors = process.end()
    assert code == 1
    assert "orders[0] at offset 1, attempt 1: ValueError: broken" in errors
    assert committed(kafka_broker) == 1


def test_a_handler_that_exits_ends_the_process_with_its_code(kafka_broker: ThreadedBroker) -> None:
    with running(kafka_broker, "a", "exits") as process:
        code, _ = process.end()
    assert code == 3
    assert committed(kafka_broker) == 1


def test_a_signal_during_the_start_ends_the_process() -> None:
    with running_without_broker() as process:
        process.read("starting")
        process.signal(signal.SIGTERM)
        code, _ = process.end()
    assert code == 0


@contextmanager
def running_without_broker() -> Iterator[Process]:
    program = (
        "import asyncio, aiokwire\n"
        'worker = aiokwire.Worker("127.0.0.1:1", group_id="billing", bootstrap_timeout_ms=600_000)\n'
        '@worker.handler("orders")\n'
        "async def handle(value: bytes) -> None: ...\n"
        "async def main() -> None:\n"
        '    asyncio.get_running_loop().call_later(0.1, lambda: print("starting", flush=True))\n'
        "    await worker.run()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Process(process)
        finally:
            process.kill()
