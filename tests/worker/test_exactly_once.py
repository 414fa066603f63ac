"""Exactly-once: what handlers send and the offsets are one transaction, whatever fails."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple

import anyio
import pytest

from aiokwire import Consumer, Context, DeadLetter, KafkaError, Producer, TopicPartition, Worker
from aiokwire.broker import Broker
from aiokwire.producer import ProducerConfig
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.types import Order
from aiokwire.worker.committer import Finished
from aiokwire.worker.completed_offsets import CompletedOffsets
from aiokwire.worker.context import Output
from aiokwire.worker.handlers import Handler
from aiokwire.worker.outcomes import RetryPolicy
from aiokwire.worker.recovery import RenewableProducer
from aiokwire.worker.transactional import TransactionCommitter
from aiokwire.worker.work_queue import HandlerLine, WorkQueue
from tests.worker.workers import Handled, committed, fill, new_worker, until, until_committed, values, visible


def new_invoicer(broker: Broker, **options: Any) -> tuple[Worker, Handled]:
    """A worker that sends one invoice for each order, before and after its handler may fail."""
    worker = new_worker(broker, delivery="exactly-once", **options)
    handled = Handled()

    @worker.handler("orders")
    async def invoice(value: str, context: Context) -> None:
        assert await context.send("invoices", f"{value}-before".encode()) is None
        await handled(value, context)
        await context.submit("invoices", f"{value}-after".encode())

    return worker, handled


def invoices(*orders: str) -> list[str]:
    return sorted(f"{order}-{part}" for order in orders for part in ("before", "after"))


async def test_outputs_and_offsets_are_committed_together(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2", "a:3")
    await fill(kafka_broker, "a:4", partition=1)
    worker, _ = new_invoicer(kafka_broker)
    async with worker:
        await until_committed(kafka_broker, 3)
        await until_committed(kafka_broker, 1, partition=1)
    sent = await visible(kafka_broker, "invoices")
    assert sorted(sent) == invoices("1", "2", "3", "4")
    assert sent.index("1-after") < sent.index("3-before")


async def test_an_attempt_that_fails_has_sent_nothing(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    worker, handled = new_invoicer(kafka_broker)
    handled.fail("1", ValueError("first"), ValueError("second"))
    async with worker:
        await until_committed(kafka_broker, 2)
    assert sorted(await visible(kafka_broker, "invoices")) == invoices("1", "2")


async def test_a_dead_letter_is_part_of_the_transaction(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    worker, handled = new_invoicer(kafka_broker)
    handled.fail("1", DeadLetter("rejected"))
    async with worker:
        await until_committed(kafka_broker, 2)
    assert sorted(await visible(kafka_broker, "invoices")) == invoices("2")
    (letter,) = kafka_broker.records("orders.dlq")
    assert letter.value == b"1"


async def test_a_transaction_does_not_wait_for_running_handlers(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2", "c:3")
    worker, handled = new_invoicer(kafka_broker, shutdown_timeout_ms=0)
    handled.hold("1")
    async with worker:
        await until_committed(kafka_broker, 0, (1, 3))
        assert sorted(await visible(kafka_broker, "invoices")) == invoices("2", "3")
    worker, handled = new_invoicer(kafka_broker)
    async with worker:
        await until_committed(kafka_broker, 3)
    assert handled.started == ["1"]
    assert sorted(await visible(kafka_broker, "invoices")) == invoices("1", "2", "3")


@pytest.mark.parametrize(
    ("api", "code"),
    [
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ApiKey.TXN_OFFSET_COMMIT, ErrorCode.ILLEGAL_GENERATION),
        (ApiKey.END_TXN, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ApiKey.PRODUCE, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
async def test_a_transaction_that_fails_is_repeated_without_its_handlers(
    kafka_broker: Broker, api: ApiKey, code: ErrorCode
) -> None:
    await fill(kafka_broker, *(f"k{n % 3}:{n}" for n in range(9)))
    rule = kafka_broker.faults.on(api, times=2, node=None).error(code)
    worker, handled = new_invoicer(kafka_broker)
    async with worker:
        await rule.hit(2)
        await until_committed(kafka_broker, 9)
    assert sorted(handled.started) == [str(n) for n in range(9)]
    assert sorted(await visible(kafka_broker, "invoices")) == invoices(*(str(n) for n in range(9)))


async def test_a_record_that_cannot_be_sent_fails_alone(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    worker = new_worker(kafka_broker, delivery="exactly-once", max_request_size=2000)

    @worker.handler("orders")
    async def handle(value: str, context: Context) -> None:
        await context.send("invoices", value.encode())
        if value == "1":
            await context.send("invoices", bytes(3000))

    async with worker:
        await until_committed(kafka_broker, 2)
    assert await visible(kafka_broker, "invoices") == ["2"]
    assert await visible(kafka_broker, "orders.dlq") == ["1"]


async def test_a_newer_instance_stops_the_worker(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    worker, _ = new_invoicer(kafka_broker, transactional_id="billing-1")
    await worker.start()
    await until_committed(kafka_broker, 1)
    newer, _ = new_invoicer(kafka_broker, transactional_id="billing-1", group_id="other")
    async with newer:
        await until(lambda: len(values(kafka_broker, "invoices")) >= 4)
        await fill(kafka_broker, "a:2")
        with pytest.raises(KafkaError, match="transactional id 'billing-1': the worker stops"):
            await worker.wait()
        with pytest.raises(KafkaError):
            await worker.close()
    assert (await committed(kafka_broker)).offset == 1


async def test_metadata_that_the_broker_finds_too_large_is_shortened(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")

    def has_metadata(request: Any) -> bool:
        return any(part.committed_metadata for topic in request.topics for part in topic.partitions)

    rule = kafka_broker.faults.on(ApiKey.TXN_OFFSET_COMMIT, when=has_metadata, times=None).error(
        ErrorCode.OFFSET_METADATA_TOO_LARGE
    )
    worker, handled = new_invoicer(kafka_broker)
    handled.hold("1")
    async with worker:
        await rule.hit(7)
        await until_committed(kafka_broker, 0)
        assert sorted(await visible(kafka_broker, "invoices")) == invoices("2")
        handled.release("1")
        await until_committed(kafka_broker, 2)
    assert sorted(await visible(kafka_broker, "invoices")) == invoices("1", "2")


class Run(NamedTuple):
    """A handler's call, as the committer knows it."""

    place: str
    tp: TopicPartition


async def test_what_a_handler_publishes_after_its_partition_was_lost_is_not_committed(kafka_broker: Broker) -> None:
    """A loss and a new transaction may wake a handler that waits to publish in one turn of the
    loop."""
    kept, lost = TopicPartition("orders", 0), TopicPartition("orders", 1)
    queue = WorkQueue(Order.KEY, 10, 1000, lambda: None)
    handler = Handler(no_op, "orders")
    queue.assign(kept, HandlerLine(handler, RetryPolicy(), 1.0, handler), CompletedOffsets())
    config = ProducerConfig[bytes, bytes](bootstrap_servers=kafka_broker.bootstrap_servers, transactional_id="billing")
    producers = RenewableProducer(config, lambda config: Producer(config=config), has_own_id=True)
    fatal: list[BaseException] = []
    async with (
        Consumer(partitions=[kept], bootstrap_servers=kafka_broker.bootstrap_servers, group_id="billing") as consumer,
        producers.current,
        anyio.create_task_group() as tasks,
    ):
        finished = Finished(consumer, queue, 4096)
        committer = TransactionCommitter(producers, consumer, finished, queue, 0.01, random.Random(1), fatal.append)
        tasks.start_soon(committer.run)
        await committer.publish(Run("orders[1] at offset 5", lost), [Output("invoices", b"5", None, 0, None, None)])
        await committer.publish(Run("orders[0] at offset 7", kept), [Output("invoices", b"7", None, 0, None, None)])
        await committer.commit([kept], 10)
        tasks.cancel_scope.cancel()
    assert await visible(kafka_broker, "invoices") == ["7"]
    assert not fatal


async def no_op(_value: bytes) -> None: ...


@pytest.mark.parametrize("seed", range(3))
async def test_every_order_has_one_invoice_while_workers_and_requests_fail(kafka_broker: Broker, seed: int) -> None:
    rng = random.Random(seed)
    await fill(kafka_broker, *(f"k{n % 7}:{n}" for n in range(0, 60, 2)))
    await fill(kafka_broker, *(f"k{n % 7}:{n}" for n in range(1, 60, 2)), partition=1)
    codes = {
        ApiKey.TXN_OFFSET_COMMIT: ErrorCode.NOT_COORDINATOR,
        ApiKey.END_TXN: ErrorCode.CONCURRENT_TRANSACTIONS,
        ApiKey.PRODUCE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
    for api, code in codes.items():
        kafka_broker.faults.on(api, nth=rng.randrange(1, 4), times=2).error(code)
    kafka_broker.faults.on(ApiKey.HEARTBEAT, nth=rng.randrange(2, 9)).error(ErrorCode.UNKNOWN_MEMBER_ID)

    async def live() -> None:
        """Run a worker until it has done some work; stop it without waiting for its handlers."""
        worker = new_worker(kafka_broker, delivery="exactly-once", shutdown_timeout_ms=0, revoke_timeout_ms=0)
        handled = 0

        @worker.handler("orders")
        async def handle(value: str, context: Context) -> None:
            nonlocal handled
            for _ in range(rng.randrange(20)):
                await anyio.lowlevel.checkpoint()
            handled += 1
            if rng.random() < 0.1:
                raise ValueError("now and then")
            await context.send("invoices", value.encode())

        async with worker:
            goal = rng.randrange(1, 20)
            with anyio.move_on_after(2):  # there may be less to do
                await until(lambda: handled >= goal)

    outcomes: list[str] = []
    with anyio.fail_after(60):
        while len(outcomes) < 60:
            async with anyio.create_task_group() as group:
                group.start_soon(live)
                group.start_soon(live)
            outcomes = await visible(kafka_broker, "invoices") + await visible(kafka_broker, "orders.dlq")
    assert Counter(outcomes) == {str(n): 1 for n in range(60)}
