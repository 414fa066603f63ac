"""Executors share the event loop with everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from unittest.mock import sentinel

import anyio
import pytest

from aiokwire.records import Record
from aiokwire.types import Order, TopicPartition
from aiokwire.worker.completed_offsets import CompletedOffsets
from aiokwire.worker.executor import Executor, Turn
from aiokwire.worker.handlers import Handler
from aiokwire.worker.outcomes import RetryPolicy
from aiokwire.worker.work_queue import HandlerLine, WorkQueue

ORDERS = TopicPartition("orders", 0)
RECORDS = 200


class CountedTurn(Turn):
    """A turn that has always ended."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses = 0

    async def pause(self, clock: Callable[[], float]) -> None:
        self.pauses += 1
        await anyio.lowlevel.checkpoint()


async def handled_with(executors: int, handler: Handler) -> CountedTurn:
    """Have executors handle all records, and return their turn."""
    line = HandlerLine(handler, RetryPolicy(), 300.0, handler)
    queue = WorkQueue(Order.NONE, 10 * RECORDS, 1 << 30, lambda: None)
    queue.assign(ORDERS, line, CompletedOffsets())
    queue.admit({ORDERS: [Record("orders", 0, offset, value=b"7") for offset in range(RECORDS)]})
    turn = CountedTurn()
    async with anyio.create_task_group() as tasks:
        for _ in range(executors):
            tasks.start_soon(Executor(queue, sentinel.settlement, sentinel.outlet, turn).run)
        with anyio.fail_after(15):
            while queue.in_flight:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    return turn


async def test_handlers_that_do_not_wait_leave_the_event_loop_its_turns() -> None:
    async def handle(value: bytes) -> None: ...

    turn = await handled_with(20, Handler(handle, "orders"))
    assert turn.pauses == RECORDS


async def test_executors_whose_handlers_wait_give_no_further_turns() -> None:
    async def handle(value: bytes) -> None:
        await anyio.lowlevel.checkpoint()

    turn = await handled_with(20, Handler(handle, "orders"))
    assert turn.pauses <= 1  # of the executor that runs last


class Idle:
    """Executors that wait for a record of a queue, and what they found."""

    def __init__(self) -> None:
        async def handle(value: bytes) -> None: ...

        handler = Handler(handle, "orders")
        self._queue = WorkQueue(Order.NONE, 10 * RECORDS, 1 << 30, lambda: None)
        self._queue.assign(ORDERS, HandlerLine(handler, RetryPolicy(), 300.0, handler), CompletedOffsets())
        self.found: list[tuple[str, bool]] = []  # names of executors, and whether there was a record

    async def wait(self, name: str) -> None:
        """Be an idle executor."""
        await self._queue.wait()
        self.found.append((name, self._queue.take() is not None))

    def admit(self, offset: int) -> None:
        self._queue.admit({ORDERS: [Record("orders", 0, offset, value=b"7")]})


async def test_one_executor_is_woken_at_a_time_and_wakes_the_next_one() -> None:
    idle = Idle()
    async with anyio.create_task_group() as tasks:
        for name in "abcde":
            tasks.start_soon(idle.wait, name)
        await anyio.wait_all_tasks_blocked()
        for offset in range(3):
            idle.admit(offset)
        assert idle.found == []
        await anyio.wait_all_tasks_blocked()
        assert [is_found for _, is_found in idle.found] == [True] * 3
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("is_woken", [True, False])
async def test_another_executor_takes_the_record_when_one_is_cancelled(is_woken: bool) -> None:
    idle = Idle()
    other = asyncio.create_task(idle.wait("other"))  # noqa: TID251 - cancelled between wake and turn
    await anyio.wait_all_tasks_blocked()
    cancelled = asyncio.create_task(idle.wait("cancelled"))  # noqa: TID251 - as a scope never does
    await anyio.wait_all_tasks_blocked()
    if is_woken:
        idle.admit(0)  # it is woken, and does not run any more
    cancelled.cancel()
    await asyncio.wait([cancelled])
    if not is_woken:
        idle.admit(0)
    with anyio.fail_after(15):
        await other
    assert (cancelled.cancelled(), idle.found) == (True, [("other", True)])
