"""The worker on the embedded broker: order, commits, restarts, back-pressure, stopping."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest

from aiokwire import ConfigurationError, Context, KafkaError, Worker
from aiokwire.broker import Broker
from aiokwire.errors import ClosedError
from aiokwire.testing import ApiKey, ErrorCode
from tests.worker.workers import Handled, fill, new_worker, until, until_committed


async def test_every_record_is_handled_and_committed(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f"k{n % 7}:{n}" for n in range(50)))
    await fill(kafka_broker, *(f"k{n % 7}:{n}" for n in range(50, 100)), partition=1)
    handled = Handled()
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: len(handled.finished) == 100)
    assert sorted(handled.finished, key=int) == [str(n) for n in range(100)]
    for key in range(7):
        for part in (range(50), range(50, 100)):
            numbers = [int(value) for value in handled.finished if int(value) in part and int(value) % 7 == key]
            assert numbers == sorted(numbers)
    await until_committed(kafka_broker, 50)
    await until_committed(kafka_broker, 50, partition=1)


async def test_a_slow_handler_does_not_block_other_keys(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3", "b:4", ":5")
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: set(handled.finished) == {"3", "4", "5"})
        await until_committed(kafka_broker, 0, (2, 5))
        assert "2" not in handled.started
        handled.release("1")
        await until(lambda: len(handled.finished) == 5)
        await until_committed(kafka_broker, 5)
    assert handled.finished.index("1") < handled.finished.index("2")


@pytest.mark.parametrize(("order", "started"), [("partition", ["1"]), ("key", ["1", "3"]), ("none", ["1", "2", "3"])])
async def test_the_order_decides_which_records_wait(kafka_broker: Broker, order: str, started: list[str]) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3")
    handled = Handled()
    handled.hold("1", "2", "3")
    worker = new_worker(kafka_broker, order=order)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: worker.in_flight == 3 and len(handled.started) == len(started))
        assert sorted(handled.started) == started
        handled.release("1", "2", "3")
        await until(lambda: len(handled.finished) == 3)


async def test_no_more_than_the_allowed_handlers_run(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f":{n}" for n in range(10)))
    await fill(kafka_broker, *(f":{n}" for n in range(10)), topic="invoices")
    running: dict[str, int] = {"orders": 0, "invoices": 0}
    most: dict[str, int] = {"orders": 0, "invoices": 0, "all": 0}
    done = 0

    async def handle(value: bytes, context: Context) -> None:
        nonlocal done
        running[context.topic] += 1
        most[context.topic] = max(most[context.topic], running[context.topic])
        most["all"] = max(most["all"], sum(running.values()))
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        running[context.topic] -= 1
        done += 1

    worker = new_worker(kafka_broker, concurrency=4)
    worker.add_handler(handle, "orders", name="orders")
    worker.add_handler(handle, "invoices", name="invoices", concurrency=1)
    async with worker:
        await until(lambda: done == 20)
    assert most["invoices"] == 1
    assert most["all"] <= 4
    assert most["orders"] >= 3


async def test_a_restart_skips_records_that_finished_beyond_a_gap(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2", "c:3", "a:4", "b:5")
    first = Handled()
    first.hold("1")
    worker = new_worker(kafka_broker, shutdown_timeout_ms=0)
    worker.add_handler(first, "orders")
    async with worker:
        await until(lambda: set(first.finished) == {"2", "3", "5"})
    await until_committed(kafka_broker, 0, (1, 3), (4, 5))

    second = Handled()
    worker = new_worker(kafka_broker)
    worker.add_handler(second, "orders")
    async with worker:
        await fill(kafka_broker, "c:6")
        await until(lambda: "6" in second.finished and "4" in second.finished)
    assert sorted(second.started) == ["1", "4", "6"]
    await until_committed(kafka_broker, 6)


async def test_a_partition_that_is_full_is_not_read_while_others_continue(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f"a:s{n}" for n in range(30)))
    handled = Handled()
    handled.hold("s0")
    worker = new_worker(kafka_broker, max_in_flight_records=8, order="partition")
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: worker.in_flight >= 3)
        await fill(kafka_broker, *(f"b:f{n}" for n in range(40)), partition=1)
        await until(lambda: "f39" in handled.finished)
        assert worker.in_flight <= 8
        assert handled.finished == [f"f{n}" for n in range(40)]
        handled.release("s0")
        await until(lambda: "s29" in handled.finished)


async def test_bytes_in_flight_are_bounded(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f"a:{n}" + "x" * 1000 for n in range(40)))
    handled = Handled()
    handled.hold("0" + "x" * 1000)
    worker = new_worker(kafka_broker, max_in_flight_bytes=8_000, order="partition", max_poll_records=2)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: worker.in_flight >= 3)
        await fill(kafka_broker, "b:last", partition=1)
        await until(lambda: "last" in handled.finished)
        assert worker.in_flight <= 8
        handled.release("0" + "x" * 1000)
        await until(lambda: len(handled.finished) == 41)


async def test_topics_can_be_chosen_by_pattern(kafka_broker: Broker) -> None:
    await fill(kafka_broker, ":1")
    await fill(kafka_broker, ":9", topic="orders.dlq")
    handled = Handled()
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, re.compile(r"orders.*"))
    async with worker:
        await until(lambda: handled.finished == ["1"])


async def test_what_a_handler_submits_is_acknowledged_before_the_record_is_committed(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2")
    held = kafka_broker.faults.on(ApiKey.PRODUCE, topic="invoices").hold()

    async def invoice(value: str, context: Context) -> None:
        await context.submit("invoices", value.encode())

    worker = new_worker(kafka_broker)
    worker.add_handler(invoice, "orders")
    async with worker:
        await held.arrived()
        await until(lambda: worker.in_flight >= 1)
        await fill(kafka_broker, ":3", partition=1)
        held.release()
        await until_committed(kafka_broker, 2)
    assert sorted(record.value or b"" for record in kafka_broker.records("invoices")) == [b"1", b"2", b"3"]


async def test_at_most_once_commits_before_the_handler_starts(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    seen: list[int] = []
    worker = new_worker(kafka_broker, delivery="at-most-once", retry=None)

    @worker.handler("orders")
    async def handle(value: str) -> None:
        seen.append(int(value))
        raise ValueError("it is not called again")

    async with worker:
        await until(lambda: len(seen) == 2)
        await until_committed(kafka_broker, 2)
        await until(lambda: len(kafka_broker.records("orders.dlq")) == 2)
    assert sorted(seen) == [1, 2]


async def test_a_claim_that_fails_is_repeated_before_anything_is_handled(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    rule = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, times=2).error(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
    handled = Handled()
    worker = new_worker(kafka_broker, delivery="at-most-once", retry=None)
    worker.add_handler(handled, "orders")
    async with worker:
        await rule.hit(2)
        await until(lambda: len(handled.finished) == 2)
    assert sorted(handled.started) == ["1", "2"]


async def test_stopping_finishes_running_handlers_and_starts_no_more(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3")
    stopping = []
    release = anyio.Event()
    worker = new_worker(kafka_broker)

    @worker.handler("orders")
    async def handle(value: str, context: Context) -> None:
        stopping.append(context.is_stopping)
        await release.wait()
        stopping.append(context.is_stopping)

    await worker.start()
    await until(lambda: len(stopping) == 2)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.close)
        await until(lambda: worker.in_flight == 2)
        release.set()
    assert stopping == [False, False, True, True]
    await until_committed(kafka_broker, 1, (2, 3))


async def test_handlers_are_cancelled_when_the_shutdown_takes_too_long(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    await worker.start()
    await until(lambda: handled.finished == ["2"])
    await worker.close(timeout=0.01)
    assert handled.finished == ["2"]
    await until_committed(kafka_broker, 0, (1, 2))


async def test_a_worker_in_a_cancelled_scope_closes_and_commits(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    with anyio.CancelScope() as scope:
        async with worker:
            await until(lambda: handled.finished == ["2"])
            scope.cancel()
            await anyio.sleep_forever()
    await until_committed(kafka_broker, 0, (1, 2))


async def test_a_worker_starts_once(kafka_broker: Broker) -> None:
    worker = new_worker(kafka_broker)
    with pytest.raises(ConfigurationError, match="the worker has no handlers"):
        await worker.start()
    worker = new_worker(kafka_broker)
    worker.add_handler(Handled(), "orders")
    async with worker:
        with pytest.raises(ClosedError, match="was already started"):
            await worker.start()
        with pytest.raises(ConfigurationError, match="before the worker starts"):
            worker.add_handler(Handled(), "invoices")
    with pytest.raises(ClosedError, match="was already started"):
        await worker.start()
    await worker.close()


async def test_a_start_without_a_broker_fails_and_leaves_nothing_behind() -> None:
    worker = Worker("127.0.0.1:1", group_id="billing", bootstrap_timeout_ms=10)
    worker.add_handler(Handled(), "orders")
    with pytest.raises(KafkaError, match=r"127\.0\.0\.1:1"):
        await worker.start()
    await worker.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"group_id": None}, "a worker commits offsets for a group: pass group_id="),
        ({"order": "topic"}, "order must be one of partition, key, none"),
        ({"delivery": "twice"}, "delivery must be one of at_least_once, at_most_once, exactly_once"),
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"enable_auto_commit": True}, "enable_auto_commit must be False"),
        ({"value_deserializer": bytes.decode}, "value_deserializer is not an option of a worker: annotate"),
        ({"transactional_id": "t"}, 'transactional_id needs delivery="exactly-once"'),
        ({"delivery": "at-most-once"}, "retry has 3 attempts"),
        ({"delivery": "exactly-once", "commit_interval_ms": 60_000}, "must be less than transaction_timeout_ms"),
        ({"dead_letter_topic": "{topic}"}, "is not a topic for dead letters"),
        ({"concurency": 4}, "did you mean 'concurrency'"),
        ({"max_inflight_records": 4}, "did you mean 'max_in_flight_records'"),
    ],
)
async def test_wrong_options_are_refused(kafka_broker: Broker, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        new_worker(kafka_broker, **options)


def test_a_worker_is_created_without_a_running_loop() -> None:
    worker = Worker("localhost:9092", group_id="billing")
    worker.add_handler(Handled(), "orders")
    assert repr(worker) == "<Worker 'billing' new, 1 handler(s), 0 in flight>"
