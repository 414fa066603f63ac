"""What a failing handler leads to: another attempt, a dead letter, the next record, or the end."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from typing import Any

import anyio
import pytest

from aiokwire import AuthorizationError, Context, DeadLetter, KafkaError, Retry, RetryPolicy, Skip, Worker
from aiokwire.broker import Broker
from aiokwire.testing import ApiKey, ErrorCode
from tests.worker.workers import AT_ONCE, Handled, committed, fill, new_worker, until, until_committed, values


async def test_a_retry_keeps_the_order_of_its_key_and_holds_up_no_other(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3")
    handled = Handled()
    handled.fail("1", ValueError("first"), ValueError("second"))
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    async with worker:
        await until_committed(kafka_broker, 3)
    assert [value for value in handled.finished if value != "3"] == ["1", "2"]
    assert [attempt for attempt in handled.attempts if attempt[0] == "1"] == [("1", 1), ("1", 2), ("1", 3)]


async def test_a_record_that_waits_for_its_retry_takes_no_place_of_a_handler(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    handled = Handled()
    handled.fail("1", Retry(after=3600))
    worker = new_worker(kafka_broker, concurrency=1)
    worker.add_handler(handled, "orders")
    async with worker:
        await until_committed(kafka_broker, 0, (1, 2))
    assert handled.finished == ["2"]


async def test_a_worker_that_was_closed_before_a_retry_is_freed(kafka_broker: Broker) -> None:
    """The garbage collector finds the worker in the closure of the handler of the record."""

    async def closed_worker() -> weakref.ref[Worker]:
        await fill(kafka_broker, "a:1", "a:2", "b:3")
        worker = new_worker(kafka_broker)

        @worker.handler("orders")
        async def handle(value: str) -> None:
            assert worker.failure is None
            if value == "1":
                raise Retry(after=3600)

        async with worker:
            await until_committed(kafka_broker, 0, (2, 3))
        return weakref.ref(worker)

    closed = await closed_worker()
    gc.collect()
    assert closed() is None


async def test_the_last_failure_is_a_dead_letter_with_its_origin(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2")
    handled = Handled()
    handled.fail("1", *[ValueError("no such customer")] * 3)
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders", name="bill")
    async with worker:
        await until_committed(kafka_broker, 2)
    (letter,) = kafka_broker.records("orders.dlq")
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (b"a", b"1")
    assert headers["__connect.errors.topic"] == b"orders"
    assert headers["__connect.errors.exception.message"] == b"no such customer"
    assert headers["aiokwire.errors.attempts"] == b"3"
    assert headers["aiokwire.errors.handler"] == b"bill"
    assert handled.finished == ["2"]


async def test_an_offset_is_not_committed_before_its_dead_letter_is_acknowledged(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    held = kafka_broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq").hold()
    handled = Handled()
    handled.fail("1", DeadLetter("rejected"))
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    async with worker:
        await held.arrived()
        await until_committed(kafka_broker, 0, (1, 2))
        held.release()
        await until_committed(kafka_broker, 2)
    assert values(kafka_broker, "orders.dlq") == ["1"]


async def test_records_that_cannot_be_decoded_become_dead_letters_at_once(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:{", 'a:{"id": 2}')
    seen: list[Any] = []
    worker = new_worker(kafka_broker)

    @worker.handler("orders")
    async def handle(order: dict[str, Any]) -> None:
        seen.append(order)

    async with worker:
        await until_committed(kafka_broker, 2)
    assert seen == [{"id": 2}]
    (letter,) = kafka_broker.records("orders.dlq")
    assert letter.value == b"{"
    assert dict(letter.headers)["aiokwire.errors.attempts"] == b"1"


@pytest.mark.parametrize("error", [Skip("a duplicate"), ValueError("the policy skips")])
async def test_a_skipped_record_counts_as_completed(kafka_broker: Broker, error: Exception) -> None:
    await fill(kafka_broker, "a:1", "a:2")
    handled = Handled()
    handled.fail("1", error)
    worker = new_worker(kafka_broker, retry=RetryPolicy(attempts=1, then="skip"))
    worker.add_handler(handled, "orders")
    async with worker:
        await until_committed(kafka_broker, 2)
    assert handled.finished == ["2"]
    assert values(kafka_broker, "orders.dlq") == []


async def test_a_policy_may_stop_the_worker_with_the_record_uncommitted(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2", "b:3")
    handled = Handled()
    handled.hold("1", "3")
    handled.fail("1", ValueError("broken"))
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders", name="bill", retry=RetryPolicy(attempts=1, then="stop"))
    await worker.start()
    await until(lambda: len(handled.started) == 2)
    handled.release("1")
    await until(lambda: worker.failure is not None)
    handled.release("3")  # what runs may finish
    with pytest.raises(KafkaError, match=r"handler bill, orders\[0\] at offset 0, attempt 1: ValueError: broken"):
        await worker.wait()
    with pytest.raises(KafkaError, match="Its policy stops the worker"):
        await worker.close()
    assert handled.started in (["1", "3"], ["3", "1"])
    await until_committed(kafka_broker, 0, (2, 3))


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, type("Abort", (BaseException,), {})])
async def test_a_base_exception_stops_the_worker(kafka_broker: Broker, kind: type[BaseException]) -> None:
    await fill(kafka_broker, "a:1", "b:2")
    handled = Handled()
    handled.fail("1", kind("now"))
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    await worker.start()
    with pytest.raises(kind):
        await worker.wait()
    with pytest.raises(kind):
        await worker.close()
    assert (await committed(kafka_broker)).offset <= 0
    assert handled.attempts.count(("1", 1)) == 1


async def test_a_handler_that_awaits_something_cancelled_has_failed(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    worker = new_worker(kafka_broker)
    attempts = []

    @worker.handler("orders")
    async def handle(value: str, context: Context) -> None:
        attempts.append(context.attempt)
        if context.attempt == 1:
            raise asyncio.CancelledError

    async with worker:
        await until_committed(kafka_broker, 1)
    assert attempts == [1, 2]


async def test_an_attempt_that_takes_too_long_is_cancelled_and_has_failed(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2")
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders", timeout=0.01)
    async with worker:
        await until_committed(kafka_broker, 2)
    assert [attempt for attempt in handled.attempts if attempt[0] == "1"] == [("1", 1), ("1", 2), ("1", 3)]
    (letter,) = kafka_broker.records("orders.dlq")
    assert dict(letter.headers)["__connect.errors.exception.message"] == b"the handler did not finish within 0.01 s"


async def test_the_timeout_of_the_worker_holds_for_handlers_without_one(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker, handler_timeout_ms=5)
    worker.add_handler(handled, "orders")
    async with worker:
        await until_committed(kafka_broker, 1)
    assert values(kafka_broker, "orders.dlq") == ["1"]


async def test_a_handler_that_never_ends_holds_up_its_key_alone(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", *(f"b:{n}" for n in range(2, 30)))
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker, handler_timeout_ms=0, shutdown_timeout_ms=0, max_in_flight_records=8)
    worker.add_handler(handled, "orders")
    async with worker:
        await until(lambda: len(handled.finished) == 28)
        await until_committed(kafka_broker, 0, (1, 29))


async def test_a_handler_that_blocks_the_loop_delays_the_others_and_loses_nothing(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2")
    seen: list[str] = []
    worker = new_worker(kafka_broker)
    loop = asyncio.get_running_loop()

    @worker.handler("orders")
    async def handle(value: str) -> None:
        until = loop.time() + 0.2
        while loop.time() < until:
            pass
        seen.append(value)

    async with worker:
        await until_committed(kafka_broker, 2)
    assert seen == ["1", "2"]
    assert worker.failure is None


async def test_a_missing_dead_letter_topic_stops_the_worker_with_advice(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1", "a:2")
    handled = Handled()
    handled.fail("1", DeadLetter())
    worker = new_worker(kafka_broker, dead_letter_topic="{topic}.missing")
    worker.add_handler(handled, "orders")
    await worker.start()
    with pytest.raises(KafkaError, match=r"could not be sent to topic 'orders.missing': .*Create the topic"):
        await worker.wait()
    with pytest.raises(KafkaError, match=r"orders\[0\] at offset 0"):
        await worker.close()
    assert handled.started == ["1"]
    assert (await committed(kafka_broker)).offset <= 0


async def test_a_forbidden_dead_letter_topic_stops_the_worker_with_advice(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    kafka_broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq").error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    handled = Handled()
    handled.fail("1", DeadLetter())
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    await worker.start()
    with pytest.raises(KafkaError, match="permit writing to it"):
        await worker.wait()
    with pytest.raises(KafkaError):
        await worker.close()
    assert (await committed(kafka_broker)).offset <= 0


async def test_a_delivery_that_fails_after_its_handler_returned_fails_the_record(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    kafka_broker.faults.on(ApiKey.PRODUCE, topic="invoices").error(ErrorCode.INVALID_RECORD)
    worker = new_worker(kafka_broker)

    @worker.handler("orders")
    async def invoice(value: str, context: Context) -> None:
        await context.submit("invoices", value.encode())

    async with worker:
        await until_committed(kafka_broker, 1)
    assert values(kafka_broker, "orders.dlq") == ["1"]


async def test_metadata_that_the_broker_finds_too_large_is_shortened(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(kafka_broker, "a:1", "b:2")

    def has_metadata(request: Any) -> bool:
        return any(part.committed_metadata for topic in request.topics for part in topic.partitions)

    rule = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, when=has_metadata, times=None).error(
        ErrorCode.OFFSET_METADATA_TOO_LARGE
    )
    handled = Handled()
    handled.hold("1")
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    async with worker:
        await rule.hit(7)  # 4096 characters, halved to none
        await until_committed(kafka_broker, 0)
        handled.release("1")
        await until_committed(kafka_broker, 2)
    warnings = [each.message for each in caplog.records if "offset.metadata.max.bytes" in each.message]
    assert len(warnings) == rule.hits


async def test_a_commit_that_fails_is_repeated_by_the_next_one(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    rule = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, times=2).error(ErrorCode.UNKNOWN_SERVER_ERROR)
    handled = Handled()
    worker = new_worker(kafka_broker)
    worker.add_handler(handled, "orders")
    async with worker:
        await rule.hit(2)
        await until_committed(kafka_broker, 1)


async def test_a_forbidden_group_stops_the_worker(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:1")
    kafka_broker.faults.on(ApiKey.OFFSET_COMMIT, times=None).error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    worker = new_worker(kafka_broker)
    worker.add_handler(Handled(), "orders")
    await worker.start()
    with pytest.raises(AuthorizationError):
        await worker.wait()
    with pytest.raises(AuthorizationError):
        await worker.close()


async def test_each_outcome_is_logged_in_one_line(kafka_broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "aiokwire.worker")
    await fill(kafka_broker, "a:1", "b:2")
    handled = Handled()
    handled.fail("1", ValueError("first"))
    handled.fail("2", Skip("a duplicate"))
    worker = new_worker(kafka_broker, retry=AT_ONCE)
    worker.add_handler(handled, "orders")
    async with worker:
        await until_committed(kafka_broker, 2)
    lines = [each.message for each in caplog.records if each.name == "aiokwire.worker"]
    assert len(lines) == 2
    assert any(line.startswith("orders[0] at offset 0: attempt 1 failed, next in 0.00") for line in lines)
    assert "orders[0] at offset 1: skipped after 1 attempt(s): Skip: a duplicate" in lines
    await anyio.lowlevel.checkpoint()
