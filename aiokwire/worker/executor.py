"""Calls handlers: a fixed number of executors that take records, and what interrupts them."""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Final

import anyio
import anyio.lowlevel

from aiokwire.clock import loop_time
from aiokwire.types import TopicPartition
from aiokwire.worker.context import Outlet
from aiokwire.worker.settlement import Settlement
from aiokwire.worker.work_queue import Work, WorkQueue

# After this time (seconds) with handlers that do not wait, the event loop gets a turn.
TURN: Final = 0.005


class Interruption(enum.Enum):
    """Why a running handler is cancelled."""

    TIMEOUT = "timeout"
    GIVEN_UP = "given up"  # its partition, or the whole worker


class Turn:
    """The time until which the executors together may run without a turn of the event loop.

    It is checked by an executor that is still `current` when its handler has returned: others have
    run since if the handler waited for something, and with them the event loop.
    """

    __slots__ = ("current", "ends")

    def __init__(self) -> None:
        self.ends: float = 0.0
        self.current: Executor | None = None  # which called a handler last

    async def pause(self, clock: Callable[[], float]) -> None:
        """Give the event loop a turn."""
        await anyio.lowlevel.checkpoint()
        now = clock()
        if now >= self.ends:
            self.ends = now + TURN


class Executor:
    """Handles one record, or one batch, at a time, until cancelled."""

    __slots__ = (
        "_clock",
        "_error",
        "_interruption",
        "_outlet",
        "_queue",
        "_scope",
        "_settlement",
        "_turn",
        "expires",
        "item",
        "started",
    )

    def __init__(self, queue: WorkQueue, settlement: Settlement, outlet: Outlet, turn: Turn) -> None:
        self._queue = queue
        self._settlement = settlement
        self._outlet = outlet
        self._turn = turn
        self._clock: Callable[[], float] = asyncio.get_running_loop().time
        self._scope = anyio.CancelScope()
        self._interruption: Interruption | None = None
        self._error: BaseException | None = None  # of the attempt that was interrupted
        self.item: Work | None = None  # being handled
        self.started: float = 0.0  # when the attempt began
        self.expires: float = math.inf  # when the attempt times out

    async def run(self) -> None:
        """Handle records."""
        while True:
            with anyio.CancelScope() as self._scope:
                if self.item is not None:  # its attempt timed out
                    await self._fail(self.item)
                await self._handle_records()
            self._after_interruption()

    def interrupt(self, why: Interruption) -> None:
        """Cancel what runs now."""
        self.expires = math.inf
        self._interruption = why
        self._scope.cancel()

    async def _handle_records(self) -> None:
        """Handle records until interrupted."""
        queue, clock, turn, outlet = self._queue, self._clock, self._turn, self._outlet
        now = clock()
        while self._interruption is None:
            item = queue.take()
            if item is None:
                await queue.wait()
                now = clock()
                continue
            self.item = item
            self.started = now
            line = item.partition.handler_line
            self.expires = now + line.timeout
            context = line.new_context(item.record, item.attempt, line.name, outlet)
            turn.current = self
            try:
                await line.attempt(item.record, context)
            except BaseException as error:
                self.expires = math.inf
                item.track()  # the traceback has this frame
                if isinstance(error, asyncio.CancelledError) and is_cancelled():
                    raise
                self._error = as_failure(error)
                line.counts.raised(self._error, clock() - now)
                if self._interruption is not None:
                    return
                await self._fail(item)
                now = clock()
            else:
                self.expires = math.inf
                ended = clock()
                line.counts.returned(ended - now)
                now = ended
                if self._interruption is not None:
                    return
                if context.deliveries is None and context.held is None and context.failures is None:
                    queue.finish(item)
                else:
                    await self._settlement.finish(item, context)
                    now = clock()
                self.item = None
            if turn.current is self and now >= turn.ends:
                await turn.pause(clock)
                now = clock()

    async def _fail(self, item: Work) -> None:
        error, self._error = self._error, None
        assert error is not None
        await self._settlement.fail(item, error)
        self.item = None

    def _after_interruption(self) -> None:
        """Have a record that timed out fail; release one whose partition was given up."""
        item, why = self.item, self._interruption
        self._interruption = None
        if item is None:
            return
        if why is Interruption.TIMEOUT:
            timeout = item.partition.handler_line.timeout
            if self._error is None:
                self._error = TimeoutError(f"the handler did not finish within {timeout:g} s")
                item.partition.handler_line.counts.raised(self._error, timeout)
            return
        self.item = self._error = None
        self._queue.release(item)
        self._queue.abandon(item)


def is_cancelled() -> bool:
    """Whether this task is cancelled; else a handler awaited something that was."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def as_failure(error: BaseException) -> BaseException:
    """Return what a handler failed with, if nothing cancelled it."""
    if not isinstance(error, asyncio.CancelledError):
        return error
    failure = RuntimeError("the handler awaited a task or future that was cancelled")
    failure.__cause__ = error
    return failure


class Executors:
    """All executors of a worker, with their timeouts."""

    def __init__(self, executors: Sequence[Executor], shortest_timeout: float) -> None:
        """`shortest_timeout`: of all handlers, `math.inf` if none has one."""
        self._executors = executors
        self._shortest = shortest_timeout

    def interrupt(self, partitions: Collection[TopicPartition]) -> int:
        """Cancel the handlers of records of these partitions; return their number."""
        running = [each for each in self._executors if each.item is not None and each.item.tp in partitions]
        for each in running:
            each.interrupt(Interruption.GIVEN_UP)
        return len(running)

    async def watch_timeouts(self) -> None:
        """Cancel attempts that take too long, until cancelled.

        No attempt that starts during a pause can expire before the pause ends.
        """
        if math.isinf(self._shortest):
            return
        while True:
            now = loop_time()
            until = now + self._shortest
            for each in self._executors:
                if each.expires <= now:
                    each.interrupt(Interruption.TIMEOUT)
                elif each.expires < until:
                    until = each.expires
            await anyio.sleep_until(until)


class RetryTimer:
    """Records that wait for their next attempt."""

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self._waiting: list[tuple[float, int, Work]] = []  # a heap by time
        self._number = itertools.count()
        self._changed = anyio.Event()

    @property
    def records(self) -> list[Work]:
        """The records, and batches, that wait."""
        return [item for _, _, item in self._waiting if not item.partition.is_closing]

    def put_off(self, item: Work, delay: float) -> None:
        """Have a record handled again after `delay` seconds."""
        self._queue.put_off(item)
        heapq.heappush(self._waiting, (loop_time() + delay, next(self._number), item))
        self._changed.set()

    async def run(self) -> None:
        """Return records to the queue when their time has come, until cancelled."""
        while True:
            due = self._waiting[0][0] if self._waiting else math.inf
            if due > loop_time():
                self._changed = anyio.Event()
                with anyio.CancelScope(deadline=due):
                    await self._changed.wait()
                continue
            self._queue.put_back(heapq.heappop(self._waiting)[2])
