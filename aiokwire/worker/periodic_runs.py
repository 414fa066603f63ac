"""Calls the periodic handlers of a started worker, each in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import anyio

from aiokwire.clock import loop_time
from aiokwire.errors import ConfigurationError
from aiokwire.hooks import HookCaller, Hooks
from aiokwire.metrics import Labels, Sample
from aiokwire.types import TopicPartition
from aiokwire.worker.context import Outlet
from aiokwire.worker.dead_letters import summary_of
from aiokwire.worker.executor import as_failure, is_cancelled
from aiokwire.worker.handlers import HandlerRegistry
from aiokwire.worker.metrics import PeriodicCounts
from aiokwire.worker.periodic import PeriodicContext, PeriodicHandler
from aiokwire.worker.settlement import Publisher
from aiokwire.worker.work_queue import WorkQueue

logger: logging.Logger = logging.getLogger("aiokwire.worker")

# Of a series of failures, those with these numbers and every 100th are logged as warnings.
_LOGGED: Final = (1, 2, 5, 20)


class Assignments:
    """Which periodic handlers may run here, by the partitions that the worker is assigned."""

    def __init__(self, queue: WorkQueue, handlers: HandlerRegistry) -> None:
        self._queue = queue
        self._deciding = TopicPartition(min(handlers.topics), 0) if handlers.topics else None

    def check(self, handler: PeriodicHandler) -> None:
        """Raises: ConfigurationError: no partition decides where the handler runs."""
        if handler.runs_on == "one" and self._deciding is None:
            raise ConfigurationError(
                f'handler {handler.name}: runs_on="one" needs a handler with a topic by name, whose partition 0 '
                "decides which worker runs it; all handlers have patterns"
            )

    def current(self) -> list[TopicPartition]:
        """Return the partitions that are assigned, and are not being given up."""
        return [tp for tp, partition in self._queue.partitions.items() if not partition.is_closing]

    def permit(self, handler: PeriodicHandler) -> bool:
        """Return whether a handler may run here now."""
        if handler.runs_on == "each":
            return True
        current = self.current()
        return self._deciding in current if handler.runs_on == "one" else bool(current)


class _Source(NamedTuple):
    """The origin of a run's records: not a partition."""

    place: str
    tp: TopicPartition | None = None


class Schedule:
    """Times of the runs of one handler: the multiples of its period since the start."""

    def __init__(self, period: float, jitter: float, rng: random.Random, start: float) -> None:
        self._period = period
        self._spread = jitter * period
        self._rng = rng
        self._start = start
        self._number = 0  # of the last period

    def advance(self, now: float) -> int:
        """Move to the next period whose run may still start; return the number left out."""
        before = self._number
        self._number = max(before + 1, math.ceil((now - self._start - self._spread) / self._period))
        return self._number - before - 1

    def draw(self) -> float:
        """Return when the run of the current period starts."""
        return self._start + self._number * self._period + self._rng.uniform(0, self._spread)


class PeriodicRun(HookCaller):
    """One periodic handler with its runs, which never overlap."""

    def __init__(
        self,
        handler: PeriodicHandler,
        timeout: float,
        assignments: Assignments,
        outlet: Outlet,
        publisher: Publisher | None,
        hooks: Hooks | None,
        rng: random.Random,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        """`timeout`: seconds of a run; `publisher`: with exactly-once."""
        super().__init__(hooks, logger)
        self.handler = handler
        self.counts: PeriodicCounts = PeriodicCounts()
        self.ended: anyio.Event | None = None  # while a run is running
        self._timeout = timeout
        self._assignments = assignments
        self._outlet = outlet
        self._publisher = publisher
        self._rng = rng
        self._on_fatal = on_fatal
        self._scope = anyio.CancelScope()
        self._number = 0
        self._failures = 0  # since the last run that succeeded

    async def run(self) -> None:
        """Call the handler at its times, until cancelled."""
        handler = self.handler
        schedule = Schedule(handler.period, handler.jitter, self._rng, loop_time())
        while True:
            self.counts.left_out(schedule.advance(loop_time()))
            await anyio.sleep_until(schedule.draw())
            if not self._outlet.is_stopping and self._assignments.permit(handler):
                await self._run_once()

    def interrupt(self) -> None:
        """Cancel the run."""
        self._scope.cancel()

    async def _run_once(self) -> None:
        self._number += 1
        self.ended = ended = anyio.Event()
        started = loop_time()
        try:
            with anyio.CancelScope() as self._scope:
                await self._attempt()
                self._succeeded(loop_time() - started)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            self._failed(as_failure(error), loop_time() - started)
        finally:
            ended.set()
            self.ended = None

    async def _attempt(self) -> None:
        """Call the handler; at the end its records are acknowledged, or part of a transaction."""
        context = PeriodicContext(self.handler.name, self._number, self._assignments.current(), self._outlet)
        with self._hooked():
            await self._call_handler(context)
            if context.held is not None:
                assert self._publisher is not None
                await self._publisher.publish(_Source(f"{self.handler.name}, run {self._number}"), context.held)
            for delivery in context.deliveries or ():
                await delivery

    async def _call_handler(self, context: PeriodicContext) -> None:
        with anyio.move_on_after(self._timeout) as scope:
            await self.handler(context)
        if scope.cancel_called:
            raise TimeoutError(f"the run did not finish within {self._timeout:g} s")

    def _hooked(self) -> AbstractContextManager[object]:
        if not self.is_overridden("around_periodic"):
            return contextlib.nullcontext()
        return self._around(self._hooks.around_periodic, self.handler.name)

    def _succeeded(self, seconds: float) -> None:
        self.counts.ended(seconds)
        if self._failures:
            logger.info("periodic handler %s succeeded after %d failure(s)", self.handler.name, self._failures)
        self._failures = 0

    def _failed(self, error: BaseException, seconds: float) -> None:
        self.counts.ended(seconds, error)
        if not isinstance(error, Exception):
            logger.error("periodic handler %s: %s was raised: the worker stops", self.handler.name, summary_of(error))
            self._on_fatal(error)
            return
        self._failures += 1
        level = logging.WARNING if self._failures in _LOGGED or self._failures % 100 == 0 else logging.DEBUG
        logger.log(
            level,
            "periodic handler %s failed in run %d (%d in a row), and runs again in its next period of %g s: %s",
            self.handler.name,
            self._number,
            self._failures,
            self.handler.period,
            summary_of(error),
        )


class PeriodicRuns:
    """All periodic handlers of a worker."""

    def __init__(self, runs: Sequence[PeriodicRun]) -> None:
        self._runs = runs

    def __iter__(self) -> Iterator[PeriodicRun]:
        return iter(self._runs)

    async def settle(self, timeout: float) -> None:
        """Wait until no handler runs, at most `timeout` seconds."""
        with anyio.move_on_after(timeout):
            for each in self._runs:
                if each.ended is not None:
                    await each.ended.wait()

    def interrupt(self) -> list[str]:
        """Cancel the handlers that run; return their names."""
        running = [each for each in self._runs if each.ended is not None]
        for each in running:
            each.interrupt()
        return [each.handler.name for each in running]

    def samples(self, labels: Labels) -> list[Sample]:
        """Return the metrics of the handlers; from any thread."""
        return [sample for each in self._runs for sample in each.counts.samples(each.handler.name, labels)]
