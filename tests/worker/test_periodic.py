"""Periodic handlers: when they run, what they send, how they fail, and how they end."""

from __future__ import annotations

import functools
import itertools
import logging
import random
import re
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from aiokwire import ConfigurationError, Hooks, PeriodicContext, TopicPartition, Worker
from aiokwire.broker import Broker
from aiokwire.testing import ApiKey, WorkerTest
from aiokwire.testing.plugin import kafka_worker
from aiokwire.worker import metrics
from aiokwire.worker.periodic import PeriodicHandler
from aiokwire.worker.periodic_runs import Schedule
from tests.metric_values import value_of
from tests.worker.workers import fill, new_worker, until, until_committed, visible

__all__ = ["kafka_worker"]

NewTest = Callable[..., WorkerTest]


def worker_with(**options: Any) -> Worker:
    """A worker with a handler that does nothing."""
    worker = Worker(group_id="billing", **options)

    @worker.handler("orders", "returns")
    async def bill(order: str) -> None: ...

    return worker


# --- when they run ----------------------------------------------------------------------------------------------------


def starts(period: float, jitter: float, runs: list[float]) -> tuple[list[float], int]:
    """Return when runs of these lengths start, and how many periods are left out."""
    schedule = Schedule(period, jitter, random.Random(1), 100.0)
    now, found, missed = 100.0, [], 0
    for elapsed in runs:
        missed += schedule.advance(now)
        now = max(now, schedule.draw())
        found.append(now - 100)
        now += elapsed
    return found, missed


def test_runs_start_at_multiples_of_the_period() -> None:
    assert starts(10, 0, [0, 3, 9.9]) == ([10, 20, 30], 0)


def test_a_run_that_takes_longer_than_its_period_leaves_periods_out() -> None:
    assert starts(10, 0, [15, 0, 25, 0]) == ([10, 30, 40, 70], 3)


def test_jitter_delays_each_start_by_another_part_of_the_period_without_drift() -> None:
    found, missed = starts(10, 0.5, [0] * 1000)
    delays = [at - 10 * number for number, at in enumerate(found, 1)]
    assert missed == 0
    assert all(0 <= delay <= 5 for delay in delays)
    assert max(delays) - min(delays) > 4


def test_with_the_longest_jitter_no_period_is_left_out_by_short_runs() -> None:
    found, missed = starts(10, 1, [0.5] * 1000)
    assert missed == 0
    assert 9990 <= found[-1] <= 10_010


async def test_a_handler_runs_once_per_period_beside_the_records(kafka_worker: NewTest) -> None:
    worker = worker_with()
    seen: list[tuple[int, int]] = []

    @worker.every(3600, jitter=0)
    async def report(context: PeriodicContext) -> None:
        seen.append((context.number, len(context.assignment)))

    async with kafka_worker(worker) as test:
        await test.send("orders", "a")
        await anyio.sleep(3 * 3600 + 60)
        await test.drain()
        calls = test.periodic_calls
    assert seen == [(1, 2), (2, 2), (3, 2)]
    gaps = [later.started - earlier.started for earlier, later in itertools.pairwise(calls)]
    assert gaps == pytest.approx([3600, 3600])
    assert {call.handler for call in calls} == {"report"}


async def test_a_run_never_overlaps_with_the_next_one(kafka_worker: NewTest) -> None:
    worker = worker_with()
    running = 0

    @worker.every(10, jitter=0)
    async def report() -> None:
        nonlocal running
        running += 1
        assert running == 1
        await anyio.sleep(25)
        running -= 1

    async with kafka_worker(worker) as test:
        await anyio.sleep(100)
        found = test.worker.metrics()
        assert [call.error for call in test.periodic_calls] == [None] * 3
        assert value_of(found, metrics.PERIODIC_MISSED, handler="report") == 6
        assert value_of(found, metrics.PERIODIC, handler="report") == 3


async def test_runs_take_none_of_the_concurrency(kafka_worker: NewTest) -> None:
    worker = worker_with(concurrency=1)

    @worker.every(10)
    async def report() -> None:
        await anyio.sleep_forever()

    async with kafka_worker(worker, shutdown_timeout_ms=0) as test:
        await anyio.sleep(20)
        await test.send("orders", "a")
        await test.drain()


# --- where they run ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("runs_on", "expected"), [("each", 3), ("assigned", 2), ("one", 1)])
async def test_members_of_a_group_share_runs_as_chosen(kafka_worker: NewTest, runs_on: Any, expected: int) -> None:
    """Three members, of which two have a partition."""
    worker = Worker(group_id="billing")
    ran: set[int] = set()

    @worker.handler("orders")
    async def bill(order: str) -> None: ...

    @worker.every(60, runs_on=runs_on)
    async def report(context: PeriodicContext) -> None:
        ran.add(id(context._outlet))  # one for each member
        if runs_on == "one":
            assert TopicPartition("orders", 0) in context.assignment

    async with kafka_worker(worker, topics={"orders": 2}) as test:
        servers = {"broker": test.broker}
        async with kafka_worker(worker, **servers), kafka_worker(worker, **servers):
            await anyio.sleep(300)
            ran.clear()
            await anyio.sleep(120)
            assert len(ran) == expected


async def test_a_member_that_leaves_hands_its_runs_over(kafka_worker: NewTest) -> None:
    worker = Worker(group_id="billing")
    worker.add_handler(lambda_free, "orders")
    ran: list[int] = []

    @worker.every(60, runs_on="one")
    async def report(context: PeriodicContext) -> None:
        ran.append(id(context._outlet))

    async with kafka_worker(worker) as first, kafka_worker(worker, broker=first.broker) as second:
        await anyio.sleep(300)
        (owner,) = {*ran[-5:]}
        leaving = first if id(first.worker._runtime._outlet) == owner else second  # type: ignore[union-attr]
        await leaving.worker.close()
        ran.clear()
        await anyio.sleep(300)
    assert ran
    assert owner not in ran


async def lambda_free(order: str) -> None: ...


async def test_patterns_leave_open_which_worker_is_the_one() -> None:
    worker = Worker("127.0.0.1:1", group_id="billing")
    worker.add_handler(lambda_free, re.compile("orders.*"))
    worker.every(60, runs_on="one")(nothing)
    with pytest.raises(ConfigurationError, match='handler nothing: runs_on="one" needs a handler with a topic by name'):
        await worker.start()


async def nothing() -> None: ...


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_run_that_fails_is_logged_and_counted_and_the_next_period_runs_again(
    kafka_worker: NewTest, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "aiokwire.worker")
    worker = worker_with()

    @worker.every(60)
    async def report(context: PeriodicContext) -> None:
        if context.number < 4:
            raise ConnectionError("no database")

    async with kafka_worker(worker) as test:
        await anyio.sleep(330)
        errors = [type(call.error) for call in test.periodic_calls]
        found = test.worker.metrics()
    assert errors == [ConnectionError] * 3 + [type(None)] * 2
    assert value_of(found, metrics.PERIODIC, type="ConnectionError") == 3
    lines = [record.getMessage() for record in caplog.records if "periodic handler" in record.getMessage()]
    assert lines == [
        "periodic handler report failed in run 1 (1 in a row), and runs again in its next period of 60 s: "
        "ConnectionError: no database",
        "periodic handler report failed in run 2 (2 in a row), and runs again in its next period of 60 s: "
        "ConnectionError: no database",
        "periodic handler report succeeded after 3 failure(s)",
    ]


async def test_a_run_that_takes_too_long_is_cancelled(kafka_worker: NewTest) -> None:
    worker = worker_with()
    swallowed = False

    @worker.every(60, timeout=5)
    async def report() -> None:
        await anyio.sleep_forever()

    @worker.every(60)
    async def stubborn() -> None:
        nonlocal swallowed
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            swallowed = True

    async with kafka_worker(worker, handler_timeout_ms=20_000) as test:
        await anyio.sleep(100)
        errors = {call.handler: str(call.error) for call in test.periodic_calls}
    assert errors == {
        "report": "the run did not finish within 5 s",
        "stubborn": "the run did not finish within 20 s",
    }
    assert swallowed


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
async def test_a_run_whose_records_are_refused_has_failed(kafka_worker: NewTest, delivery: str) -> None:
    worker = worker_with(delivery=delivery)

    @worker.every(60)
    async def report(context: PeriodicContext) -> None:
        await context.submit("reports", b"small" if context.number > 1 else bytes(2_000_000))

    async with kafka_worker(worker) as test:
        await anyio.sleep(130)
        first, second = test.periodic_calls
        assert "max_request_size" in str(first.error)
        assert second.error is None
        assert [record.value for record in test.sent("reports")] == [b"small"]


async def test_system_exit_stops_the_worker(kafka_worker: NewTest) -> None:
    worker = worker_with()

    @worker.every(60)
    async def report() -> None:
        raise SystemExit(3)

    async with kafka_worker(worker) as test:
        with pytest.raises(SystemExit):
            await test.worker.wait()
        with pytest.raises(SystemExit):
            await test.drain()


async def test_a_handler_that_raises_cancelled_error_itself_has_failed(kafka_worker: NewTest) -> None:
    worker = worker_with()

    @worker.every(60)
    async def report() -> None:
        raise anyio.get_cancelled_exc_class()

    async with kafka_worker(worker) as test:
        await anyio.sleep(130)
        assert value_of(test.worker.metrics(), metrics.PERIODIC, type="RuntimeError") == 2


# --- hooks ------------------------------------------------------------------------------------------------------------


async def test_hooks_that_raise_change_no_run(kafka_worker: NewTest) -> None:
    class Broken(Hooks):
        def around_periodic(self, handler: str) -> Any:
            raise ValueError(handler)

    worker = Worker(group_id="billing", hooks=Broken())
    worker.add_handler(lambda_free, "orders")
    worker.add_periodic(nothing, 60)
    async with kafka_worker(worker) as test:
        await anyio.sleep(70)
        assert [call.error for call in test.periodic_calls] == [None]


# --- the end ----------------------------------------------------------------------------------------------------------


async def test_a_run_may_finish_within_the_shutdown_timeout(kafka_worker: NewTest) -> None:
    worker = worker_with()
    seen: list[bool] = []

    @worker.every(60)
    async def report(context: PeriodicContext) -> None:
        seen.append(context.is_stopping)
        await anyio.sleep(10)
        seen.append(context.is_stopping)
        await context.send("reports", b"done")

    async with kafka_worker(worker, shutdown_timeout_ms=20_000) as test:
        await anyio.sleep(68)
        await test.worker.close()
        assert seen == [False, True]
        assert [record.value for record in test.sent("reports")] == [b"done"]


async def test_a_run_that_does_not_finish_is_cancelled_when_the_worker_stops(
    kafka_worker: NewTest, caplog: pytest.LogCaptureFixture
) -> None:
    worker = worker_with()
    cancelled_at: list[float] = []

    @worker.every(60)
    async def report() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled_at.append(anyio.current_time())

    async with kafka_worker(worker, shutdown_timeout_ms=5_000) as test:
        await anyio.sleep(70)
        stopped_at = anyio.current_time()
        await test.worker.close()
        await anyio.sleep(600)
        counted = [sample for sample in test.worker.metrics() if sample.metric is metrics.PERIODIC]
    assert counted == [], "it neither succeeded nor failed"
    assert cancelled_at == [pytest.approx(stopped_at + 5, abs=0.1)]
    assert "group 'billing': periodic handlers were cancelled: report" in caplog.text


# --- exactly once -----------------------------------------------------------------------------------------------------


async def test_what_a_run_sends_is_one_transaction(kafka_broker: Broker) -> None:
    worker = new_worker(kafka_broker, delivery="exactly-once")
    worker.add_handler(lambda_free, "orders")
    failed = anyio.Event()

    async def report(context: PeriodicContext) -> None:
        assert await context.send("invoices", f"{context.number}-a".encode()) is None
        if context.number == 1:
            failed.set()
            raise ValueError("nothing was sent")
        await context.submit("invoices", f"{context.number}-b".encode())

    worker.add_periodic(report, 0.02, jitter=0)
    async with worker:
        await failed.wait()
        await until(lambda: len(kafka_broker.records("invoices", committed=True)) >= 4)
    found = await visible(kafka_broker, "invoices")
    assert found == [f"{number}-{part}" for number in range(2, 2 + len(found) // 2) for part in "ab"]


async def test_a_transaction_of_a_run_that_fails_is_repeated(kafka_broker: Broker) -> None:
    worker = new_worker(kafka_broker, delivery="exactly-once")
    worker.add_handler(lambda_free, "orders")
    refused = kafka_broker.faults.on(ApiKey.PRODUCE, topic="invoices", times=2).error(6)

    async def report(context: PeriodicContext) -> None:
        if context.number == 1:
            await context.send("invoices", b"once")

    worker.add_periodic(report, 0.02, jitter=0)
    async with worker:
        await refused.hit(2)
        await until(lambda: bool(kafka_broker.records("invoices", committed=True)))
    assert await visible(kafka_broker, "invoices") == ["once"]


@pytest.mark.parametrize("is_handled", [True, False])
async def test_a_run_in_a_transaction_of_unknown_outcome_is_never_sent_twice(
    kafka_broker: Broker, caplog: pytest.LogCaptureFixture, is_handled: bool
) -> None:
    worker = new_worker(kafka_broker, delivery="exactly-once", request_timeout_ms=100, transaction_timeout_ms=400)
    worker.add_handler(lambda_free, "orders")
    is_due = False

    async def report(context: PeriodicContext) -> None:
        nonlocal is_due
        if is_due:
            is_due = False
            await context.send("invoices", b"once")

    worker.add_periodic(report, 0.02, jitter=0)
    async with worker:
        for partition in (0, 1):  # the offsets of a transaction would show its outcome
            await fill(kafka_broker, "a:0", partition=partition)
            await until_committed(kafka_broker, 1, partition=partition)
        lost = kafka_broker.faults.on(ApiKey.END_TXN, times=None).drop(handled=is_handled)
        is_due = True
        again = kafka_broker.faults.on(
            ApiKey.INIT_PRODUCER_ID, when=lambda request: request.transactional_id is not None
        ).observe()
        await again.hit(timeout=30)
        lost.remove()
        await fill(kafka_broker, "a:1")
        await until_committed(kafka_broker, 2)
    assert await visible(kafka_broker, "invoices") == (["once"] if is_handled else [])
    assert "1 record(s) of periodic handlers may have been sent, or not" in caplog.text


# --- checks -----------------------------------------------------------------------------------------------------------


async def with_record(order: str) -> None: ...


async def with_default(context: PeriodicContext, *, limit: int = 3) -> None:
    assert (context.number, limit) == (1, 3)


async def by_position(context: PeriodicContext, /) -> None:
    assert context.number == 1


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (with_record, {}, "handler with_record: argument 'order' cannot be filled: a periodic handler has no record"),
        (print, {}, "handler print is not a coroutine function"),
        (nothing, {"seconds": 0}, "handler nothing: the period must be at least 0.001, not 0"),
        (nothing, {"seconds": "60"}, "handler nothing: the period must be a number, not '60'"),
        (nothing, {"jitter": 2}, "handler nothing: jitter must be at most 1, not 2"),
        (nothing, {"timeout": 0}, "handler nothing: timeout must be seconds above 0, or None, not 0"),
        (nothing, {"runs_on": "leader"}, "handler nothing: runs_on must be one of each, assigned, one, not 'leader'"),
        (nothing, {"name": "bill"}, "two handlers are named bill"),
    ],
)
def test_mistakes_are_refused_when_the_handler_is_added(function: Any, options: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        worker_with().add_periodic(function, **{"seconds": 60, **options})


def test_a_handler_cannot_have_the_name_of_a_periodic_one() -> None:
    worker = worker_with()
    worker.add_periodic(nothing, 60)
    with pytest.raises(ConfigurationError, match="two handlers are named nothing"):
        worker.add_handler(lambda_free, "refunds", name="nothing")
    assert [each.name for each in worker.copy().periodic_handlers] == ["nothing"]


async def test_arguments_are_filled_by_annotation() -> None:
    context = PeriodicContext("report", 1, (), None)  # type: ignore[arg-type]  # it sends nothing
    for function in (nothing, with_default, by_position, functools.partial(with_record, order="a")):
        await PeriodicHandler(function, 1)(context)
    assert repr(context) == "<PeriodicContext of report, run 1>"
    assert repr(PeriodicHandler(nothing, 90)) == "<PeriodicHandler nothing, every 90 s>"


async def test_a_worker_that_has_started_takes_no_further_handler(kafka_worker: NewTest) -> None:
    async with kafka_worker(worker_with()) as test:
        with pytest.raises(ConfigurationError, match="add handlers before the worker starts"):
            test.worker.add_periodic(nothing, 60)
