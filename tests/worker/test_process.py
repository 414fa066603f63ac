"""A worker as a process: signals stop it gracefully, its exit code shows how it ended."""

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


BILLING = """
import asyncio, os, signal, sys
import aiokwire

worker = aiokwire.Worker(
    sys.argv[1], group_id="billing", group_instance_id="billing-1", delivery=sys.argv[2], linger_ms=0,
    commit_interval_ms=5,
)

@worker.handler("orders")
async def bill(value: str, context: aiokwire.Context) -> None:
    if value == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(int(value) % 7 / 1000)
    await context.send("invoices", value.encode())

asyncio.run(worker.run())
"""


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"orders": 1, "invoices": 1}}


class Process:
    """A running worker, and its lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self._process = process
        self._lines: IO[str] = process.stdout

    def read(self, *expected: str) -> None:
        """Read until each of the lines was received."""
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
def program(text: str, *arguments: str) -> Iterator[Process]:
    """Run a program; it is killed at the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", text, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


@contextmanager
def running(
    broker: ThreadedBroker, *values: str, delivery: str = "at-least-once", patience: float = 60_000
) -> Iterator[Process]:
    asyncio.run(workers.fill(cast("Broker", broker), *(f"{value}:{value}" for value in values)))
    with program(PROGRAM, broker.bootstrap_servers, delivery, str(patience)) as process:
        yield process


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


WITHOUT_BROKER = """
import asyncio
import aiokwire

worker = aiokwire.Worker("127.0.0.1:1", group_id="billing", bootstrap_timeout_ms=600_000)

@worker.handler("orders")
async def handle(value: bytes) -> None: ...

async def main() -> None:
    asyncio.get_running_loop().call_later(0.1, lambda: print("starting", flush=True))
    await worker.run()

asyncio.run(main())
"""


def test_a_signal_during_the_start_ends_the_process() -> None:
    with program(WITHOUT_BROKER) as process:
        process.read("starting")
        process.signal(signal.SIGTERM)
        code, _ = process.end()
    assert code == 0


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_no_order_is_lost_by_kills_and_with_exactly_once_none_is_billed_twice(
    kafka_broker: ThreadedBroker, delivery: str
) -> None:
    orders = [str(n) for n in range(300)]
    broker = cast("Broker", kafka_broker)
    asyncio.run(workers.fill(broker, *(f"k{n}:{n}" for n in orders)))
    for last in ("40", "110", "190"):
        with program(BILLING, kafka_broker.bootstrap_servers, delivery, last) as process:
            assert process.end()[0] == -signal.SIGKILL
    with program(BILLING, kafka_broker.bootstrap_servers, delivery, "none") as process:
        asyncio.run(workers.until_committed(broker, 300))
        process.signal(signal.SIGTERM)
        assert process.end()[0] == 0
    invoices = asyncio.run(workers.visible(broker, "invoices"))
    assert set(invoices) == set(orders)
    if delivery == "exactly-once":
        assert len(invoices) == 300
