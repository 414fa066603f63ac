"""Handlers of batches: what a batch contains, when it starts, and what follows a failure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import anyio
import pyarrow
import pytest

from aiokwire import (
    BatchError,
    ConfigurationError,
    ConsumerRecord,
    Context,
    DeadLetter,
    Retry,
    RetryPolicy,
    Skip,
    Worker,
)
from aiokwire.broker import Broker
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.types import Headers
from aiokwire.worker import Key
from tests.worker.workers import AT_ONCE, committed, fill, new_worker, until, until_committed, values, visible

LONG = 3600.0


class Calls:
    """A handler of batches that keeps what it was called with; `hold` makes all calls wait."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.finished: list[str] = []
        self.attempts: list[int] = []
        self.errors: list[BaseException | None] = []
        self.gate = anyio.Event()
        self.gate.set()

    async def __call__(self, batch: list[str], context: Context) -> None:
        self.calls.append(batch)
        self.attempts.append(context.attempt)
        assert [record.offset for record in context.records] == sorted(record.offset for record in context.records)
        error = self.errors.pop(0) if self.errors else None
        await self.gate.wait()
        if error is not None:
            raise error
        self.finished += batch


def with_calls(broker: Broker, calls: Calls, max_records: int = 3, max_wait: float = 0.02, **options: Any) -> Worker:
    worker = new_worker(broker, **options)
    worker.add_handler(calls, "orders", max_records=max_records, max_wait=max_wait, name="bill")
    return worker


# --- what a batch contains --------------------------------------------------------------------------------------------


async def test_full_batches_start_at_once_in_the_order_of_offsets(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f":{n}" for n in range(6)))
    calls = Calls()
    async with with_calls(kafka_broker, calls, max_wait=LONG, order="partition"):
        await until_committed(kafka_broker, 6)
    assert calls.calls == [["0", "1", "2"], ["3", "4", "5"]]


async def test_a_batch_that_is_not_full_waits_no_longer_than_max_wait(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "a:2", "c:3")
    calls = Calls()
    async with with_calls(kafka_broker, calls, max_records=100):
        await until_committed(kafka_broker, 4)
    assert [value for call in calls.calls for value in call] == ["0", "1", "2", "3"]


async def test_without_max_wait_a_batch_has_the_available_records(kafka_broker: Broker) -> None:
    await fill(kafka_broker, ":0", ":1")
    calls = Calls()
    async with with_calls(kafka_broker, calls, max_records=100, max_wait=0):
        await until_committed(kafka_broker, 2)


async def test_a_batch_has_records_of_one_partition(kafka_broker: Broker) -> None:
    await fill(kafka_broker, ":0", ":1")
    await fill(kafka_broker, ":2", ":3", partition=1)
    calls = Calls()
    async with with_calls(kafka_broker, calls):
        await until(lambda: len(calls.finished) == 4)
    assert all(len({int(value) // 2 for value in call}) == 1 for call in calls.calls)


@pytest.mark.parametrize(
    ("order", "first"), [("partition", [["0", "1", "2"]]), ("key", [["0", "1", "2"], ["4", "6", "7"]]), ("none", None)]
)
async def test_the_order_decides_which_batches_run_at_the_same_time(
    kafka_broker: Broker, order: str, first: list[list[str]] | None
) -> None:
    await fill(kafka_broker, "a:0", "b:1", "a:2", "b:3", "c:4", "a:5", ":6", "d:7", "b:8")
    calls = Calls()
    calls.gate = anyio.Event()
    wanted = first if first is not None else [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8"]]
    async with with_calls(kafka_broker, calls, order=order, max_wait=0.05) as worker:
        await until(lambda: worker.in_flight == 9 and len(calls.calls) == len(wanted))
        assert sorted(calls.calls) == wanted
        calls.gate.set()
        await until_committed(kafka_broker, 9)
    for key in ({"0", "2", "5"}, {"1", "3", "8"}):
        own = [value for value in calls.finished if value in key]
        assert order == "none" or own == sorted(own)


async def test_no_more_batches_run_than_the_handler_allows(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f":{n}" for n in range(12)))
    calls = Calls()
    calls.gate = anyio.Event()
    worker = new_worker(kafka_broker)
    worker.add_handler(calls, "orders", max_records=3, concurrency=2)
    async with worker:
        await until(lambda: worker.in_flight == 12 and len(calls.calls) == 2)
        for _ in range(50):
            await anyio.lowlevel.checkpoint()
        assert len(calls.calls) == 2
        calls.gate.set()
        await until_committed(kafka_broker, 12)


async def test_a_partition_that_is_full_does_not_wait_for_a_full_batch(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f":{n}" for n in range(16)))
    calls = Calls()
    async with with_calls(kafka_broker, calls, max_records=8, max_wait=LONG, max_in_flight_records=8):
        await until_committed(kafka_broker, 16)


# --- arguments --------------------------------------------------------------------------------------------------------


async def test_arguments_are_lists_of_what_single_handlers_receive(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 'a:{"id": 1}', 'b:{"id": 2}')
    seen: list[Any] = []
    worker = new_worker(kafka_broker)

    @worker.handler("orders", max_records=2, max_wait=LONG)
    async def handle(
        orders: Sequence[dict[str, int]],
        keys: list[Annotated[str, Key]],
        records: list[ConsumerRecord[str, bytes]],
        headers: list[Headers],
        context: Context,
    ) -> None:
        seen.extend((orders, keys, [record.key for record in records], headers, context.partition, context.offset))

    async with worker:
        await until_committed(kafka_broker, 2)
    assert seen == [[{"id": 1}, {"id": 2}], ["a", "b"], ["a", "b"], [(), ()], 0, 0]


@pytest.mark.parametrize("kind", [pyarrow.Table, pyarrow.RecordBatch])
async def test_arrow_data_has_the_columns_of_a_consumer(kafka_broker: Broker, kind: Any) -> None:
    await fill(kafka_broker, "a:1", ":2")
    seen: list[Any] = []
    worker = new_worker(kafka_broker)

    async def handle(table: Any) -> None:
        seen.append(table)

    handle.__annotations__["table"] = kind
    worker.add_handler(handle, "orders", max_records=2, max_wait=LONG)
    async with worker:
        await until_committed(kafka_broker, 2)
    (table,) = seen
    assert isinstance(table, kind)
    assert table.schema.names == [
        "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"
    ]  # fmt: skip
    assert table.column("key").to_pylist() == [b"a", None]
    assert table.column("value").to_pylist() == [b"1", b"2"]
    assert table.column("offset").to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("annotation", "options", "advice"),
    [
        (str, {"max_records": 5}, "is not a list, but max_records= makes it a handler of batches"),
        (Headers, {"max_records": 5}, "is not a list"),
        (list[str], {"max_wait": 1.0}, "max_wait needs max_records="),
        (list[str], {"max_records": 0}, "max_records must be a number, at least 1, not 0"),
        (list[str], {"max_records": 5, "max_wait": -1}, "max_wait must be seconds, at least 0, not -1"),
        (pyarrow.Table, {}, "is Arrow data, which has many records: pass max_records="),
        (pyarrow.Table, {"max_records": 5, "value_deserializer": bytes}, "remove the deserializers"),
    ],
)
async def test_handlers_of_batches_are_checked_when_they_are_added(
    annotation: Any, options: dict[str, Any], advice: str
) -> None:
    async def handle(batch: Any) -> None: ...

    handle.__annotations__["batch"] = annotation
    with pytest.raises(ConfigurationError, match=advice):
        Worker("localhost:1", group_id="g").add_handler(handle, "orders", **options)


async def test_a_batch_larger_than_what_may_be_in_flight_is_refused(kafka_broker: Broker) -> None:
    with pytest.raises(ConfigurationError, match=r"max_records \(9\) must not exceed max_in_flight_records \(8\)"):
        await with_calls(kafka_broker, Calls(), max_records=9, max_in_flight_records=8).start()


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_batch_that_fails_is_retried_as_a_whole_and_its_keys_wait(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2", "a:3", "d:4", "e:5")
    calls = Calls()
    calls.errors = [ValueError("first"), None, ValueError("second")]
    async with with_calls(kafka_broker, calls, order="partition"):
        await until_committed(kafka_broker, 6)
    assert calls.calls == [["0", "1", "2"]] * 2 + [["3", "4", "5"]] * 2
    assert calls.attempts == [1, 2, 1, 2]


async def test_each_record_of_a_batch_that_failed_its_last_attempt_is_a_dead_letter(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2", "a:3")
    calls = Calls()
    calls.errors = [ValueError("down")] * 3
    async with with_calls(kafka_broker, calls, order="partition"):
        await until_committed(kafka_broker, 4)
    letters = kafka_broker.records("orders.dlq")
    assert sorted(letter.value or b"" for letter in letters) == [b"0", b"1", b"2"]
    assert {dict(letter.headers)["aiokwire.errors.attempts"] for letter in letters} == {b"3"}
    assert {dict(letter.headers)["__connect.errors.offset"] for letter in letters} == {b"0", b"1", b"2"}
    assert calls.finished == ["3"]


async def test_only_records_that_a_handler_reports_are_retried(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2")
    calls = Calls()
    calls.errors = [BatchError({1: ValueError("locked"), 2: DeadLetter("forged")}), None]
    async with with_calls(kafka_broker, calls, max_wait=LONG):
        await until_committed(kafka_broker, 3)
    assert calls.calls == [["0", "1", "2"], ["1"]]
    assert calls.attempts == [1, 2]
    assert values(kafka_broker, "orders.dlq") == ["2"]


async def test_records_may_be_reported_by_themselves_and_each_follows_its_error(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2", "d:3")
    attempts: list[list[int]] = []
    worker = new_worker(kafka_broker)

    @worker.handler("orders", max_records=4, max_wait=LONG)
    async def handle(records: list[ConsumerRecord[str, str]]) -> None:
        attempts.append([record.offset for record in records])
        if len(attempts) == 1:
            raise BatchError({records[0]: Skip("old"), records[1]: Retry(after=0.01), records[3]: ValueError("x")})

    async with worker:
        await until_committed(kafka_broker, 4)
    assert attempts == [[0, 1, 2, 3], [1, 3]]


async def test_completed_records_are_committed_while_reported_ones_wait_with_their_keys(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2", "b:3", "a:4", "c:5")
    calls = Calls()
    calls.errors = [BatchError({1: Retry(after=LONG)})]
    async with with_calls(kafka_broker, calls):
        await until_committed(kafka_broker, 1, (2, 3), (4, 6))
    assert sorted(calls.finished) == ["4", "5"]


async def test_a_report_that_names_no_record_of_the_batch_fails_the_batch(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1")
    calls = Calls()
    calls.errors = [BatchError({7: ValueError("x")})]
    async with with_calls(kafka_broker, calls, max_records=2):
        await until_committed(kafka_broker, 2)
    assert calls.calls == [["0", "1"]] * 2


async def test_records_that_cannot_be_decoded_become_dead_letters_alone(kafka_broker: Broker) -> None:
    await fill(kafka_broker, 'a:{"id": 1}', "b:{", 'c:{"id": 3}', "d:no")
    seen: list[Any] = []
    worker = new_worker(kafka_broker)

    @worker.handler("orders", max_records=4, max_wait=LONG)
    async def handle(orders: list[dict[str, int]], context: Context) -> None:
        seen.append(orders)
        if context.attempt == 1:
            raise ValueError("down")

    async with worker:
        await until_committed(kafka_broker, 4)
    assert seen == [[{"id": 1}, {"id": 3}]] * 2
    assert sorted(values(kafka_broker, "orders.dlq")) == ["no", "{"]


async def test_a_batch_of_which_nothing_can_be_decoded_calls_no_handler(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:{", "b:{")
    worker = new_worker(kafka_broker)

    @worker.handler("orders", max_records=2)
    async def handle(orders: list[dict[str, int]]) -> None:
        raise AssertionError

    async with worker:
        await until_committed(kafka_broker, 2)
    assert values(kafka_broker, "orders.dlq") == ["{", "{"]


async def test_a_batch_that_takes_too_long_is_cancelled_and_retried(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1")
    attempts: list[int] = []
    worker = new_worker(kafka_broker)

    @worker.handler("orders", max_records=2, max_wait=LONG, timeout=0.01)
    async def handle(orders: list[str], context: Context) -> None:
        attempts.append(context.attempt)
        if context.attempt == 1:
            await anyio.sleep_forever()

    async with worker:
        await until_committed(kafka_broker, 2)
    assert attempts == [1, 2]


async def test_a_policy_may_stop_the_worker_with_the_batch_uncommitted(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1")
    calls = Calls()
    calls.errors = [BatchError({1: ValueError("broken")})]
    worker = with_calls(kafka_broker, calls, max_records=2, retry=RetryPolicy(attempts=1, then="stop"))
    await worker.start()
    with pytest.raises(Exception, match=r"handler bill, orders\[0\] at offset 1, attempt 1: ValueError: broken"):
        await worker.wait()
    with pytest.raises(Exception, match="broken"):
        await worker.close()
    await until_committed(kafka_broker, 1)


async def test_a_dead_letter_that_is_refused_keeps_its_record_uncommitted(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2")
    kafka_broker.faults.on(ApiKey.PRODUCE, topic="orders.dlq").error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    calls = Calls()
    calls.errors = [BatchError({1: DeadLetter("forged")})]
    worker = with_calls(kafka_broker, calls)
    await worker.start()
    with pytest.raises(Exception, match="permit writing to it"):
        await worker.wait()
    with pytest.raises(Exception, match="permit writing to it"):
        await worker.close()
    await until_committed(kafka_broker, 1, (2, 3))


# --- guarantees -------------------------------------------------------------------------------------------------------


async def test_what_a_batch_submits_is_acknowledged_before_it_is_committed(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1")
    held = kafka_broker.faults.on(ApiKey.PRODUCE, topic="invoices").hold()
    worker = new_worker(kafka_broker)

    @worker.handler("orders", max_records=2, max_wait=LONG)
    async def invoice(orders: list[str], context: Context) -> None:
        for order in orders:
            await context.submit("invoices", order.encode())

    async with worker:
        await held.arrived()
        assert (await committed(kafka_broker)).offset <= 0
        held.release()
        await until_committed(kafka_broker, 2)
    assert values(kafka_broker, "invoices") == ["0", "1"]


async def test_what_a_batch_sends_and_its_offsets_are_one_transaction(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2")
    worker = new_worker(kafka_broker, delivery="exactly-once")

    @worker.handler("orders", max_records=3, max_wait=LONG)
    async def invoice(orders: list[str], context: Context) -> None:
        if context.attempt == 1:
            await context.send("invoices", b"lost")
            raise ValueError("nothing was sent")
        for order in orders:
            if order != "1" or context.attempt == 3:
                await context.send("invoices", order.encode())
        if context.attempt == 2:
            raise BatchError({orders.index("1"): ValueError("locked")})

    async with worker:
        await until_committed(kafka_broker, 3)
    assert await visible(kafka_broker, "invoices") == ["0", "2", "1"]


async def test_at_most_once_handles_committed_records_before_it_stops(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "a:2", "c:3")
    calls = Calls()
    calls.gate = anyio.Event()
    worker = with_calls(kafka_broker, calls, max_wait=LONG, delivery="at-most-once", retry=None)
    await worker.start()
    await until(lambda: len(calls.calls) == 1 and worker.in_flight == 4)
    async with anyio.create_task_group() as group:
        group.start_soon(worker.close)
        await until(lambda: len(calls.calls) == 2)  # the batch that was filling starts
        calls.gate.set()
    assert calls.finished == ["0", "1", "2", "3"]
    await until_committed(kafka_broker, 4)


# --- stop and rebalance -----------------------------------------------------------------------------------------------


async def test_records_of_a_batch_that_was_filling_are_delivered_again(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2", "d:3")
    calls = Calls()
    async with with_calls(kafka_broker, calls, max_wait=LONG) as worker:
        await until(lambda: calls.finished == ["0", "1", "2"] and worker.in_flight == 1)
    await until_committed(kafka_broker, 3)
    async with with_calls(kafka_broker, calls, max_records=1):
        await until_committed(kafka_broker, 4)
    assert calls.finished == ["0", "1", "2", "3"]


async def test_a_filling_batch_of_a_revoked_partition_goes_to_the_new_owner(kafka_broker: Broker) -> None:
    for partition in (0, 1):
        await fill(kafka_broker, f"a:{partition}", partition=partition)
    calls, others = Calls(), Calls()
    async with with_calls(kafka_broker, calls, max_wait=LONG) as worker:
        await until(lambda: worker.in_flight == 2)
        async with with_calls(kafka_broker, others) as second:
            await until(lambda: len(second.assignment) == 1 and len(others.finished) == 1)
        assert calls.calls == []


async def test_a_batch_that_is_cancelled_by_a_stop_is_delivered_again_as_a_whole(kafka_broker: Broker) -> None:
    await fill(kafka_broker, "a:0", "b:1", "c:2", "d:3")
    calls = Calls()
    calls.gate = anyio.Event()
    async with with_calls(kafka_broker, calls, shutdown_timeout_ms=0):
        await until(lambda: len(calls.calls) == 2)
    assert (await committed(kafka_broker)).offset <= 0
    calls.gate.set()
    async with with_calls(kafka_broker, calls):
        await until_committed(kafka_broker, 4)
    assert sorted(calls.finished) == ["0", "1", "2", "3"]


async def test_metrics_count_the_records_of_batches(kafka_broker: Broker) -> None:
    await fill(kafka_broker, *(f":{n}" for n in range(6)))
    calls = Calls()
    calls.errors = [BatchError({0: Skip("old"), 1: Retry()})]
    worker = with_calls(kafka_broker, calls, retry=AT_ONCE, order="partition")
    async with worker:
        await until_committed(kafka_broker, 6)
        samples = worker.metrics()
    found = {
        sample.labels["kafka.worker.action"]: sample.value
        for sample in samples
        if sample.metric.name == "kafka.worker.failure"
    }
    assert found == {"skip": 1, "retry": 1}
    (sizes,) = [sample.value for sample in samples if sample.metric.name == "kafka.worker.batch.records"]
    assert not isinstance(sizes, (int, float))
    assert sizes.sum == 3 + 1 + 3


async def test_health_names_what_the_records_of_batches_wait_for(kafka_broker: Broker) -> None:
    await fill(kafka_broker, ":0", ":1", ":2", ":3")
    calls = Calls()
    calls.gate = anyio.Event()
    calls.errors = [None, BatchError({0: Retry(after=LONG)})]
    async with with_calls(kafka_broker, calls, max_records=2, max_wait=LONG) as worker:
        await until(lambda: len(calls.calls) == 2)
        (partition,) = worker.health().partitions.values()
        assert partition.offset == 0
        assert "handler bill has been running" in partition.reason
        calls.gate.set()
        await until(lambda: worker.health().retries == 1)
        (partition,) = worker.health().partitions.values()
        assert partition.reason == "the record waits for attempt 2 of handler bill"
