"""A worker whose broker is away: transactions of unknown outcome, and stopping in bounded time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire import (
    Context,
    DeadLetter,
    KafkaError,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
    Worker,
)
from aiokwire.broker import Broker
from aiokwire.clock import loop_time
from aiokwire.producer import ProducerRecord
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.worker import runtime
from aiokwire.worker.recovery import was_committed
from tests.worker.workers import Handled, committed, fill, new_worker, until_committed, visible

ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
# A transaction fails soon after its requests have no response.
SHORT: dict[str, Any] = {"request_timeout_ms": 100, "transaction_timeout_ms": 400}


def at(offset: int, metadata: str = "") -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, metadata, 5)


@pytest.mark.parametrize(
    ("before", "sent", "now", "outcome"),
    [
        ({ONE: at(3)}, {ONE: at(7)}, {ONE: OffsetAndMetadata(7)}, True),
        ({ONE: at(3)}, {ONE: at(7)}, {ONE: at(3)}, False),
        ({ONE: None}, {ONE: at(7)}, {ONE: None}, False),
        ({ONE: None}, {ONE: at(0)}, {ONE: at(0)}, True),
        ({ONE: at(3)}, {ONE: at(3, "more")}, {ONE: at(3, "more")}, True),
        ({ONE: at(3)}, {ONE: at(3, "more")}, {ONE: at(3)}, False),
        ({ONE: at(3), TWO: at(1)}, {ONE: at(3), TWO: at(2)}, {ONE: at(3), TWO: at(2)}, True),
        ({ONE: at(3), TWO: at(1)}, {ONE: at(3), TWO: at(2)}, {ONE: at(3)}, None),
        ({ONE: at(3)}, {ONE: at(3)}, {ONE: at(3)}, None),
        ({}, {}, {}, None),
    ],
)
def test_the_committed_offsets_show_whether_a_transaction_was_committed(
    before: Any, sent: Any, now: Any, outcome: bool | None
) -> None:
    assert was_committed(before, sent, now) is outcome


def is_transactional(request: Any) -> bool:
    return request.transactional_id is not None


def new_invoicer(broker: Broker, **options: Any) -> tuple[Worker, Handled]:
    worker = new_worker(broker, delivery="exactly-once", **{**SHORT, **options})
    handled = Handled()

    @worker.handler("orders")
    async def invoice(value: str, context: Context) -> None:
        await handled(value, context)
        await context.send("invoices", value.encode())

    return worker, handled


@pytest.mark.parametrize("is_handled", [True, False])
async def test_a_worker_continues_exactly_after_a_commit_without_a_response(
    kafka_broker: Broker, is_handled: bool
) -> None:
    worker, handled = new_invoicer(kafka_broker)
    lost = kafka_broker.faults.on(ApiKey.END_TXN, times=None).drop(handled=is_handled)
    async with worker:
        again = kafka_broker.faults.on(ApiKey.INIT_PRODUCER_ID, when=is_transactional).observe()
        await fill(kafka_broker, "a:1", "b:2")
        await again.hit(timeout=30)
        lost.remove()
        await fill(kafka_broker, "a:3")
        await until_committed(kafka_broker, 3)
    assert sorted(handled.started) == ["1", "2", "3"]
    assert sorted(await visible(kafka_broker, "invoices")) == ["1", "2", "3"]


async def test_a_worker_continues_after_an_abort_without_a_response(kafka_broker: Broker) -> None:
    """Regression: the worker stopped when a transaction ended before its offsets were known."""
    worker, handled = new_invoicer(kafka_broker, commit_interval_ms=200)
    handled.fail("1", DeadLetter("rejected"))
    kafka_broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq").error(ErrorCode.INVALID_PRODUCER_EPOCH)
    lost = kafka_broker.faults.on(ApiKey.END_TXN, times=None).drop()
    async with worker:
        again = kafka_broker.faults.on(ApiKey.INIT_PRODUCER_ID, when=is_transactional).observe()
        async with Producer(kafka_broker.bootstrap_servers) as producer:
            await producer.send_many("orders", [ProducerRecord(value, None, 0) for value in (b"2", b"1")])
        await again.hit(timeout=30)
        lost.remove()
        await until_committed(kafka_broker, 2)
    assert sorted(handled.started) == ["1", "2"]
    assert await visible(kafka_broker, "invoices") == ["2"]
    assert await visible(kafka_broker, "orders.dlq") == ["1"]


async def test_a_worker_waits_for_its_coordinator_after_a_commit_without_a_response(kafka_broker: Broker) -> None:
    worker, handled = new_invoicer(kafka_broker, default_api_timeout_ms=300)
    lost = kafka_broker.faults.on(ApiKey.END_TXN, times=None).drop(handled=True)
    async with worker:
        again = kafka_broker.faults.on(ApiKey.INIT_PRODUCER_ID, times=None, when=is_transactional).drop()
        await fill(kafka_broker, "a:1")
        await again.hit(4, timeout=30)
        lost.remove()
        again.remove()
        await fill(kafka_broker, "a:2")
        await until_committed(kafka_broker, 2)
    assert handled.started == ["1", "2"]
    assert sorted(await visible(kafka_broker, "invoices")) == ["1", "2"]


async def test_a_worker_stops_when_its_coordinator_refuses_a_new_producer(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    worker, _ = new_invoicer(kafka_broker)
    kafka_broker.faults.on(ApiKey.END_TXN, times=None).drop()
    await worker.start()
    kafka_broker.faults.on(ApiKey.INIT_PRODUCER_ID, times=None).error(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError, match="the worker stops"):
        await worker.wait()
    with pytest.raises(KafkaError):
        await worker.close()


async def test_a_dead_letter_that_was_given_up_is_not_committed(kafka_broker: Broker) -> None:
    """Regression: the transaction of the last commit had the dead letter, and not its offset."""
    await fill(kafka_broker, "a:1")
    worker, handled = new_invoicer(kafka_broker, shutdown_timeout_ms=0, **{"transaction_timeout_ms": 5000})
    handled.fail("1", DeadLetter("rejected"))
    held = kafka_broker.faults.on(ApiKey.PRODUCE).hold()
    async with anyio.create_task_group() as tasks:
        await worker.start()
        await held.arrived()
        tasks.start_soon(worker.close)
        with anyio.move_on_after(0.1):
            await anyio.sleep_forever()
        held.release()
    assert (await committed(kafka_broker)).offset < 1
    worker, handled = new_invoicer(kafka_broker)
    handled.fail("1", DeadLetter("rejected"))
    async with worker:
        await until_committed(kafka_broker, 1)
    assert await visible(kafka_broker, "orders.dlq") == ["1"]


async def test_a_dead_letter_of_an_aborted_transaction_is_sent_in_the_next_one(kafka_broker: Broker) -> None:
    """Regression: the worker stopped, because its dead letter could not be sent."""
    await fill(kafka_broker, "a:1")
    worker, handled = new_invoicer(kafka_broker)
    handled.fail("1", DeadLetter("rejected"))
    kafka_broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq").error(ErrorCode.INVALID_PRODUCER_EPOCH)
    async with worker:
        await until_committed(kafka_broker, 1)
    assert await visible(kafka_broker, "orders.dlq") == ["1"]


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
async def test_a_worker_stops_in_bounded_time_while_no_broker_responds(
    kafka_broker: Broker, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "LAST_STEP_TIMEOUT", 3.0)
    monkeypatch.setattr(runtime, "LAST_STEPS_TIMEOUT", 1.0)
    monkeypatch.setattr(runtime, "CANCEL_TIMEOUT", 0.1)
    worker = new_worker(kafka_broker, delivery=delivery, shutdown_timeout_ms=10)

    @worker.handler("orders")
    async def invoice(value: str, context: Context) -> None:
        await context.submit("invoices", value.encode())

    await worker.start()
    produce = kafka_broker.faults.on(ApiKey.PRODUCE, topic="invoices", times=None).drop()
    await fill(kafka_broker, "a:1", "b:2")
    await produce.hit(timeout=30)
    await kafka_broker.faults.stop_node(1, fail_over=False)
    began = loop_time()
    await worker.close()
    assert loop_time() - began < 8, "each of four steps had its whole time"
