"""`WorkerTest` runs a worker in virtual time, and shows the outcome of each record."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import anyio.to_thread
import pytest

import aiokwire
from aiokwire import Context, DeadLetter, KafkaError, PeriodicContext, RetryPolicy, Skip, Worker
from aiokwire.testing import ApiKey, ErrorCode, Result, VirtualTimeLoop, WorkerTest, run_in_virtual_time
from aiokwire.testing.plugin import kafka_worker

__all__ = ["kafka_worker"]

NewTest = Callable[..., WorkerTest]


@dataclasses.dataclass
class Order:
    id: int
    amount: float


def new_worker(**options: Any) -> Worker:
    """A worker as a service has it: for a cluster that a test cannot reach."""
    return Worker(
        "kafka.example:9093",
        group_id="billing",
        **{"retry": RetryPolicy(attempts=3, backoff=3600, backoff_max=7200), **options},
    )


async def test_a_retry_after_hours_takes_no_time(kafka_worker: NewTest) -> None:
    worker = new_worker()

    @worker.handler("orders")
    async def bill(order: Order, context: Context) -> None:
        if context.attempt < 3:
            raise ConnectionError("the database is down")
        await context.send("invoices", f"{order.id}: {order.amount:.2f}".encode())

    began = time.perf_counter()
    async with kafka_worker(worker) as test:
        await test.send("orders", Order(7, 19.9), key="alice")
        await test.drain()
        (outcome,) = test.outcomes
        assert (outcome.handler, outcome.result, outcome.attempts, outcome.error) == ("bill", Result.COMPLETED, 3, None)
        assert [record.value for record in test.sent("invoices")] == [b"7: 19.90"]
        assert [record.key for record in test.completed] == [b"alice"]
        first, second, third = test.calls
        assert [str(call.error) for call in (first, second)] == ["the database is down"] * 2
        assert 2880 <= second.started - first.started <= 4380
        assert third.started - second.started >= 5760
        assert test.committed("orders") == 1
    assert time.perf_counter() - began < 30, "hours passed"


async def test_each_record_has_its_outcome(kafka_worker: NewTest) -> None:
    worker = new_worker(retry=RetryPolicy(attempts=2, give_up_on=ValueError))

    @worker.handler("orders", retry=RetryPolicy(attempts=2, then="skip"))
    async def bill(order: str) -> None:
        if order == "old":
            raise Skip("billed before")
        if order == "forged":
            raise DeadLetter("the signature is wrong")
        if order == "broken":
            raise ConnectionError("no database")

    async with kafka_worker(worker, topics={"orders": 3}) as test:
        for order in ("fine", "old", "forged", "broken"):
            await test.send("orders", order, key=order)
        await test.drain()
        found = {(one.record.value or b"").decode(): (one.result, one.attempts) for one in test.outcomes}
        assert found == {
            "fine": (Result.COMPLETED, 1),
            "old": (Result.SKIPPED, 1),
            "forged": (Result.DEAD_LETTER, 1),
            "broken": (Result.SKIPPED, 2),
        }
        (letter,) = test.dead_letters
        assert (letter.record.topic, letter.handler, letter.attempts) == ("orders.dlq", "bill", 1)
        assert letter.exception.endswith("DeadLetter")
        assert letter.message == "the signature is wrong"


async def test_a_value_that_cannot_be_decoded_is_a_dead_letter(kafka_worker: NewTest) -> None:
    worker = new_worker()

    @worker.handler("orders")
    async def bill(order: Order) -> None: ...

    async with kafka_worker(worker) as test:
        await test.send("orders", b"{")
        await test.drain()
        assert [letter.record.value for letter in test.dead_letters] == [b"{"]
        assert test.completed == []


async def test_the_error_that_stops_a_worker_is_raised_by_drain_once(kafka_worker: NewTest) -> None:
    worker = new_worker(retry=RetryPolicy(attempts=1, then="stop"))

    @worker.handler("orders")
    async def bill(order: str) -> None:
        raise ValueError("no")

    async with kafka_worker(worker) as test:
        await test.send("orders", "a")
        with pytest.raises(KafkaError, match="Its policy stops the worker"):
            await test.drain()
        assert [one.result for one in test.outcomes] == [Result.UNFINISHED]
        assert test.committed("orders") is None

    async def without_drain() -> None:
        async with kafka_worker(worker) as test:
            await test.send("orders", "a")
            await anyio.sleep(60)

    with pytest.raises(KafkaError, match="Its policy stops the worker"):
        await without_drain()


async def test_a_record_that_never_finishes_is_named(kafka_worker: NewTest) -> None:
    worker = new_worker(handler_timeout_ms=0)

    @worker.handler("orders")
    async def bill(order: str) -> None:
        if order == "b":
            raise ConnectionError("no database")
        await anyio.sleep_forever()

    async with kafka_worker(worker, shutdown_timeout_ms=0) as test:
        await test.send("orders", "a", key="a")
        await test.send("orders", "b", key="b")
        problem = (
            r"2 record\(s\) are not finished after 60 s: orders\[0\] at offset 0: its handler is running; orders\[0\] "
            r"at offset 1: attempt 1 raised ConnectionError\('no database'\)"
        )
        with pytest.raises(TimeoutError, match=problem):
            await test.drain(60)


async def test_a_restart_repeats_only_what_was_unfinished(kafka_worker: NewTest) -> None:
    worker = new_worker()
    blocked = True

    @worker.handler("orders")
    async def bill(order: str) -> None:
        if order == "a" and blocked:
            await anyio.sleep_forever()

    async with kafka_worker(worker, shutdown_timeout_ms=1000) as test:
        await test.send("orders", "a", key="a")
        await test.send("orders", "b", key="b")
        await anyio.sleep(10)
        blocked = False
        await test.restart()
        await test.drain()
        assert sorted(call.record.value or b"" for call in test.calls) == [b"a", b"a", b"b"]


@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once", "exactly-once"])
async def test_every_guarantee_can_be_tested(kafka_worker: NewTest, delivery: str) -> None:
    worker = Worker(group_id="billing", delivery=delivery)

    @worker.handler("orders")
    async def bill(order: str, context: Context) -> None:
        await anyio.sleep(5)
        await context.send("invoices", order.encode())
        if order == "b":
            raise DeadLetter("no")

    async with kafka_worker(worker) as test:
        for order in "abc":
            await test.send("orders", order, key=order)
        await test.drain()
        sent = [record.value or b"" for record in test.sent("invoices")]
        assert sorted(sent) == ([b"a", b"c"] if delivery == "exactly-once" else [b"a", b"b", b"c"])
        assert len(test.dead_letters) == 1
        assert [len(test.completed), len(test.outcomes)] == [2, 3]


async def test_topics_may_be_chosen_by_pattern(kafka_worker: NewTest) -> None:
    worker = new_worker()

    @worker.handler(re.compile(r"orders\..*"))
    async def bill(order: str) -> None:
        if order == "x":
            raise DeadLetter("no")

    async with kafka_worker(worker, topics={"orders.eu": 2}) as test:
        await test.send("orders.us", "a")
        await test.send("orders.eu", "b")
        await test.send("orders.eu", "x")
        await test.drain()
        assert sorted(record.topic for record in test.completed) == ["orders.eu", "orders.us"]
        assert len(test.dead_letters) == 1


async def test_faults_of_the_broker_are_on_demand(kafka_worker: NewTest) -> None:
    worker = new_worker()

    @worker.handler("orders")
    async def bill(order: str) -> None: ...

    async with kafka_worker(worker) as test:
        refused = test.broker.faults.on(ApiKey.OFFSET_COMMIT, times=20).error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        await test.send("orders", "a")
        await test.drain()
        assert refused.hits == 20


async def test_a_handler_that_uses_a_thread_or_a_socket_runs_in_real_time(kafka_worker: NewTest) -> None:
    worker = new_worker()
    loop = asyncio.get_running_loop()
    elapsed = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await anyio.to_thread.run_sync(time.sleep, 0.1)
        writer.write(await reader.readline())
        writer.close()

    @worker.handler("orders", retry=RetryPolicy(attempts=1))
    async def bill(order: str) -> None:
        began = loop.time()
        with anyio.fail_after(20):
            if order == "a":
                await asyncio.to_thread(time.sleep, 0.1)
            elif order == "b":
                await anyio.to_thread.run_sync(time.sleep, 0.1)
            else:
                reader, writer = await asyncio.open_connection("127.0.0.1", int(order))
                writer.write(b"x\n")
                assert await reader.readline() == b"x\n"
                writer.close()
        elapsed.append(loop.time() - began)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, kafka_worker(worker) as test:
        for order in ("a", "b", str(server.sockets[0].getsockname()[1])):
            await test.send("orders", order, key=order)
        await test.drain()
        assert len(test.completed) == 3
    # The clock follows real time from the turn of the loop in which it notices the thread.
    assert all(0.01 < seconds < 10 for seconds in elapsed), elapsed


def test_tests_without_pytest_asyncio_run_in_virtual_time_too() -> None:
    async def main(seconds: float) -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        await anyio.sleep(seconds)
        return loop.time()

    assert run_in_virtual_time(main, 86_400.0) == 86_400.0


class SlowlyEndingExecutor(ThreadPoolExecutor):
    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        time.sleep(0.2)
        super().shutdown(wait, cancel_futures=cancel_futures)


def test_threads_that_end_slowly_do_not_time_out_at_the_end_of_the_loop() -> None:
    """CPython 3.12 and later wait for them for 300 s of the loop's time."""

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(SlowlyEndingExecutor())

    run_in_virtual_time(main)


async def test_in_real_time_the_error_names_the_remedy() -> None:
    worker = new_worker()

    @worker.handler("orders")
    async def bill(order: str) -> None:
        raise ConnectionError("no database")

    async with WorkerTest(worker) as test:
        await test.send("orders", "a")
        with pytest.raises(TimeoutError, match="This test runs in real time: use the fixture kafka_worker"):
            await test.drain(0.3)


async def test_a_test_that_has_not_started_is_refused_with_the_remedy() -> None:
    with pytest.raises(aiokwire.ClosedError, match="use `async with WorkerTest"):
        _ = WorkerTest(new_worker()).broker


async def test_records_wait_in_retry_topics_without_waiting(kafka_worker: NewTest) -> None:
    worker = new_worker(retry=RetryPolicy(attempts=1, delays=(60, 3600)))

    @worker.handler("orders")
    async def bill(order: str, context: Context) -> None:
        if order == "never" or context.attempt < 3:
            raise ConnectionError("no database")

    async with kafka_worker(worker) as test:
        await test.send("orders", "late")
        await test.send("orders", "never")
        await anyio.sleep(100)
        assert {one.result for one in test.outcomes} == {Result.UNFINISHED}
        await test.drain()
        found = {(one.record.value, one.result, one.attempts) for one in test.outcomes}
        assert found == {(b"late", Result.COMPLETED, 3), (b"never", Result.DEAD_LETTER, 3)}
        assert test.calls[-1].started >= 3660


async def test_periods_of_minutes_take_no_time(kafka_worker: NewTest) -> None:
    worker = new_worker(delivery="exactly-once")
    open_orders: list[str] = []

    @worker.handler("orders")
    async def bill(order: str) -> None:
        open_orders.append(order)

    @worker.every(600, jitter=0)
    async def close_the_till(context: PeriodicContext) -> None:
        orders = ",".join(open_orders)
        open_orders.clear()
        await context.send("sums", f"{context.number}: {orders}".encode())
        if context.number == 2:
            raise ConnectionError("no database")

    async with kafka_worker(worker, topics={"sums": 1}) as test:
        for order in ("a", "b", "c"):
            await test.send("orders", order)
            await anyio.sleep(610)
        await test.drain()
        assert sorted(record.value or b"" for record in test.sent("sums")) == [b"1: a", b"3: c"]
        errors = [type(call.error) for call in test.periodic_calls]
        assert errors == [type(None), ConnectionError, type(None)]
        assert {call.handler for call in test.periodic_calls} == {"close_the_till"}
