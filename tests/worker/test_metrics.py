"""`Worker.metrics()`: the time of handlers, their outcomes, and what is in flight."""

from __future__ import annotations

import anyio

from aiokwire import DeadLetter, Skip
from aiokwire.broker import Broker
from aiokwire.producer import metrics as producer_metrics
from aiokwire.threads import run_in_thread
from aiokwire.worker import metrics
from tests.metric_values import value_of
from tests.worker.workers import Handled, fill, new_worker, until, until_committed


async def test_attempts_are_timed_by_handler_and_error_and_counted_by_outcome(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3", "c:4")
    handled = Handled()
    handled.fail("1", ValueError("first"))
    handled.fail("3", Skip("not ours"))
    handled.fail("4", DeadLetter("broken"))
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders", name="bill")
    assert worker.metrics() == [], "it was not started"
    async with worker:
        await until_committed(kafka_broker, 4)
        found = await run_in_thread(worker.metrics)
    attempts = {
        sample.labels.get("error.type", ""): value_of([sample], metrics.DURATION, handler="bill", name="billing")
        for sample in found
        if sample.metric is metrics.DURATION and sample.labels["messaging.operation.name"] == "process"
    }
    assert attempts == {"": 2, "ValueError": 1, "Skip": 1, "DeadLetter": 1}
    for action in ("retry", "skip", "dead-letter"):
        assert value_of(found, metrics.FAILURES, action=action) == 1
    assert value_of(found, "messaging.client.consumed.messages", name="orders") == 4
    assert value_of(found, producer_metrics.SENT, name="orders.dlq") == 1


async def test_a_handler_that_times_out_counts_with_its_timeout(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    worker = new_worker(kafka_broker)

    async def hang() -> None:
        await anyio.sleep_forever()

    worker.add_handler(hang, "orders", timeout=0.01)
    async with worker:
        await until_committed(kafka_broker, 1)
        assert value_of(worker.metrics(), metrics.DURATION, type="TimeoutError") == 3


async def test_running_handlers_and_records_in_flight_are_measured(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3")
    worker = new_worker(kafka_broker, concurrency=5)
    proceed = anyio.Event()

    async def wait() -> None:
        await proceed.wait()

    worker.add_handler(wait, "orders")
    async with worker:
        await until(lambda: bool(worker.metrics()) and value_of(worker.metrics(), metrics.ACTIVE) == 2)
        assert value_of(worker.metrics(), metrics.IN_FLIGHT) == 3
        assert value_of(worker.metrics(), metrics.CONCURRENCY) == 5
        proceed.set()
        await until_committed(kafka_broker, 3)
        await until(lambda: value_of(worker.metrics(), metrics.IN_FLIGHT) == 0)
