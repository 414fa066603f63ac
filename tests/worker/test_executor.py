"""Executors share the event loop with everything else."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import sentinel

import anyio

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
