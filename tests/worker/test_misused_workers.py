"""What handlers and clocks do wrong, and what the worker makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

import aiokwire
from aiokwire import ConfigurationError, Context, RetryPolicy, Worker
from aiokwire.testing import Result, VirtualTimeLoop, WorkerTest
from aiokwire.testing.plugin import kafka_worker

__all__ = ["kafka_worker"]

NewTest = Callable[..., WorkerTest]


def new_worker(**options: Any) -> Worker:
    return Worker(group_id="billing", **{"retry": RetryPolicy(attempts=2), **options})


async def outcome_of(new_test: NewTest, handler: Callable[..., Any], **options: Any) -> tuple[Result, int, str]:
    """Run a handler with one record; return its outcome and the message of its dead letter."""
    worker = new_worker()
    worker.add_handler(handler, "orders", name="bill")
    async with new_test(worker, **options) as test:
        await test.send("orders", "a")
        await test.drain()
        (outcome,) = test.outcomes
        messages = [letter.message for letter in test.dead_letters]
        return outcome.result, outcome.attempts, " ".join(messages)


async def test_a_handler_that_sends_by_a_closed_producer_has_failed(kafka_worker: NewTest) -> None:
    async def bill(order: str) -> None:
        producer = aiokwire.Producer("127.0.0.1:1")
        await producer.close()
        await producer.send("invoices", b"x")

    result, attempts, message = await outcome_of(kafka_worker, bill)
    assert (result, attempts) == (Result.DEAD_LETTER, 2)
    assert "closed" in message


async def test_a_handler_whose_record_is_refused_has_failed(kafka_worker: NewTest) -> None:
    async def bill(order: str, context: Context) -> None:
        await context.send("invoices", bytes(2_000_000))

    result, attempts, message = await outcome_of(kafka_worker, bill)
    assert (result, attempts) == (Result.DEAD_LETTER, 2)
    assert "max_request_size" in message


async def test_a_handler_that_raises_cancelled_error_itself_has_failed(kafka_worker: NewTest) -> None:
    async def bill(order: str) -> None:
        raise asyncio.CancelledError

    found = await outcome_of(kafka_worker, bill)
    assert found == (Result.DEAD_LETTER, 2, "the handler awaited a task or future that was cancelled")


async def test_a_handler_that_raises_a_group_has_failed(kafka_worker: NewTest) -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def bill(order: str) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            tasks.start_soon(fail)

    result, _, message = await outcome_of(kafka_worker, bill)
    assert result is Result.DEAD_LETTER
    assert "unhandled errors in a TaskGroup" in message


async def test_an_error_without_a_text_becomes_a_dead_letter(kafka_worker: NewTest) -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def bill(order: str) -> None:
        raise OddError

    assert await outcome_of(kafka_worker, bill) == (Result.DEAD_LETTER, 2, "<str() raised RuntimeError>")


async def test_a_handler_that_swallows_its_timeout_has_failed(kafka_worker: NewTest) -> None:
    async def bill(order: str) -> None:
        try:
            await anyio.sleep(10_000)
        except asyncio.CancelledError:
            return

    found = await outcome_of(kafka_worker, bill, handler_timeout_ms=1000)
    assert found == (Result.DEAD_LETTER, 2, "the handler did not finish within 1 s")


async def test_clocks_that_jump_lose_nothing(kafka_worker: NewTest, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = new_worker(retry=RetryPolicy(attempts=3, backoff=10, backoff_max=10, jitter=0))
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    wall_time, day = loop.wall_time, 86_400.0

    @worker.handler("orders")
    async def bill(order: str, context: Context) -> None:
        if context.attempt < 3:
            jump = -day if context.attempt == 1 else day
            monkeypatch.setattr(loop, "wall_time", lambda: wall_time() + jump)
            raise ConnectionError("no database")

    async with kafka_worker(worker) as test:
        await test.send("orders", "a")
        await test.drain()
        first, _, third = test.calls
        assert third.started - first.started == pytest.approx(20, abs=0.1), "the wall clock has no effect"
        loop.advance(day)  # the process was suspended
        await test.send("orders", "b")
        await test.drain()
        assert [record.value for record in test.completed] == [b"a", b"b"]


def test_a_decorator_without_topics_is_refused() -> None:
    worker = new_worker()

    async def bill(order: str) -> None: ...

    with pytest.raises(ConfigurationError, match=r'name the topics of a handler: @worker.handler\("orders"\)'):
        worker.handler(bill)  # type: ignore[arg-type]  # what `@worker.handler` does


def test_a_function_that_is_not_a_coroutine_function_is_refused() -> None:
    async def bill(order: str) -> AsyncIterator[int]:
        yield 1

    for wrong in (bill, type("Bill", (), {"__call__": new_worker}), "orders"):
        with pytest.raises(ConfigurationError, match="is not a coroutine function: declare it `async def`"):
            new_worker().add_handler(wrong, "orders")  # type: ignore[arg-type]  # wrong on purpose
