"""The public worker: registers handlers, runs until it is stopped."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import random
import re
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar, Unpack

import anyio

from aiokwire.config import config_of, documents_options
from aiokwire.consumer import Consumer
from aiokwire.errors import ClosedError, ConfigurationError
from aiokwire.events import LIMIT, Events, EventStream
from aiokwire.hooks import Hooks, combined_hooks
from aiokwire.metrics import Metric, Sample
from aiokwire.producer import Producer
from aiokwire.types import TopicPartition
from aiokwire.worker.circuits import WorkerEvent
from aiokwire.worker.config import WorkerConfig, WorkerOptions
from aiokwire.worker.handlers import Handler, HandlerFunction, HandlerOptions, HandlerRegistry
from aiokwire.worker.health import WorkerHealth
from aiokwire.worker.metrics import METRICS
from aiokwire.worker.periodic import PeriodicHandler, PeriodicOptions
from aiokwire.worker.runtime import Runtime

F = TypeVar("F", bound=HandlerFunction)

logger: logging.Logger = logging.getLogger("aiokwire.worker")


@documents_options(WorkerConfig)
class Worker:
    """Calls a handler once for each record, many at a time, in order.

        worker = aiokwire.Worker("localhost:9092", group_id="billing")

        @worker.handler("orders")
        async def paid(order: Order, context: aiokwire.Context) -> None: ...

        asyncio.run(worker.run())

    A handler's arguments are filled by their annotations. Returning means that the record is
    completed; an exception follows the retry policy. The committed offset never passes an
    unfinished record; records that finished beyond it are named in the commit's metadata, so that
    a restart does not handle them again.
    """

    METRICS: ClassVar[tuple[Metric, ...]] = (*METRICS, *Consumer.METRICS, *Producer.METRICS)

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | None = None,
        *,
        config: WorkerConfig | None = None,
        hooks: Hooks | None = None,
        rng: random.Random | None = None,
        **options: Unpack[WorkerOptions],
    ) -> None:
        """Options are those of `WorkerConfig`, or one `config`. Needs no running loop.

        Raises: ConfigurationError: an option is unknown, out of its range, or contradicts another.
        """
        self.config: WorkerConfig = config_of(WorkerConfig, config, {"bootstrap_servers": bootstrap_servers, **options})
        self._hooks = hooks
        self._rng = rng if rng is not None else random.Random()
        self._handlers = HandlerRegistry()
        self._periodic: list[PeriodicHandler] = []
        self._events = Events[WorkerEvent]()
        self._runtime: Runtime | None = None
        self._is_closed = False
        self._stop = anyio.Event()
        self._start_scope: anyio.CancelScope | None = None  # while `run` starts the worker

    @classmethod
    def from_dict(cls, options: Mapping[str, Any], *, hooks: Hooks | None = None) -> Worker:
        """Create one from options named as in Java or librdkafka: see `WorkerConfig.from_dict`.

        Raises: ConfigurationError: an option is unknown, out of its range, or contradicts another.
        """
        return cls(config=WorkerConfig.from_dict(options), hooks=hooks)

    @classmethod
    def from_environment(
        cls, *, file: str | os.PathLike[str] | None = None, hooks: Hooks | None = None, **options: Unpack[WorkerOptions]
    ) -> Worker:
        """Create a worker from variables such as `AIOKWIRE_GROUP_ID`, files of secrets, and a
        properties file; `options` precede them. See `WorkerConfig.from_environment`.

        Raises: ConfigurationError: a variable is not an option, a file cannot be read, or as
        `Worker`.
        """
        return cls(config=WorkerConfig.from_environment(file=file, **options), hooks=hooks)

    # --- handlers -----------------------------------------------------------------------------------------------------

    def handler(self, *topics: str | re.Pattern[str], **options: Unpack[HandlerOptions]) -> Callable[[F], F]:
        """Decorate a coroutine function as the handler of topics, and of patterns for whole names.

        Args:
            topics: names, or compiled patterns.
            options: `name`; `concurrency`, the calls that run at a time; `timeout` of one attempt
                in seconds; `retry`, a `RetryPolicy`; `rate_limit`, a `RateLimit`;
                `circuit_breaker`, a `CircuitBreaker`; `key_deserializer`, `value_deserializer`;
                `max_records`, with which the function receives batches, and `max_wait`, seconds
                for which the first record of a batch waits for more (default: 0.1).

        Raises: ConfigurationError: it is not a coroutine function, an argument has an annotation
        that cannot be filled, or a topic has a handler already.
        """

        if any(map(callable, topics)):
            raise ConfigurationError('name the topics of a handler: @worker.handler("orders")')

        def decorate(function: F) -> F:
            self.add_handler(function, *topics, **options)
            return function

        return decorate

    def add_handler(
        self, function: HandlerFunction, *topics: str | re.Pattern[str], **options: Unpack[HandlerOptions]
    ) -> Handler:
        """Add a handler without a decorator; arguments as for `handler`.

        Raises: ConfigurationError: as `handler`, or the worker has started.
        """
        if self._runtime is not None:
            raise ConfigurationError("add handlers before the worker starts")
        return self._handlers.add(topics, function, **options)

    def every(self, seconds: float, **options: Unpack[PeriodicOptions]) -> Callable[[F], F]:
        """Decorate a coroutine function as a handler that is called once per period.

        It has no argument, or one annotated `PeriodicContext`. A run that fails is logged and
        counted, and the function is called again in the next period. Runs never overlap: periods
        that begin while one is running are left out.

        Args:
            seconds: the period; the first run is one period after the start.
            options: `name`; `jitter`, the longest delay of a start as a share of the period
                (default: 0.1); `timeout` of a run in seconds (default: `handler_timeout_ms`);
                `runs_on`: "each" worker of the group (default), those that are "assigned"
                partitions, or the "one" that has partition 0 of the first topic of the handlers.

        Raises: ConfigurationError: it is not a coroutine function, an argument cannot be filled, or
        an option is out of its range.
        """

        def decorate(function: F) -> F:
            self.add_periodic(function, seconds, **options)
            return function

        return decorate

    def add_periodic(
        self, function: HandlerFunction, seconds: float, **options: Unpack[PeriodicOptions]
    ) -> PeriodicHandler:
        """Add a periodic handler without a decorator; arguments as for `every`.

        Raises: ConfigurationError: as `every`, or the worker has started.
        """
        if self._runtime is not None:
            raise ConfigurationError("add handlers before the worker starts")
        handler = PeriodicHandler(function, seconds, **options)
        self._handlers.reserve(handler.name)
        self._periodic.append(handler)
        return handler

    def configure(self, **options: Unpack[WorkerOptions]) -> None:
        """Change options before the start, such as the addresses of another cluster.

        Raises: ConfigurationError: as for a new worker, or the worker has started.
        """
        if self._runtime is not None:
            raise ConfigurationError("change options before the worker starts")
        self.config = dataclasses.replace(self.config, **options)

    def copy(self, *, hooks: Hooks | None = None, **options: Unpack[WorkerOptions]) -> Worker:
        """Return a new worker with the same handlers and these options changed, not started.

        `hooks` are called beside those of this worker.

        Raises: ConfigurationError: as for a new worker.
        """
        both = [each for each in (self._hooks, hooks) if each is not None]
        config = dataclasses.replace(self.config, **options)
        copy = Worker(config=config, hooks=combined_hooks(*both) if both else None, rng=self._rng)
        copy._handlers.include(self._handlers)
        copy._periodic.extend(self._periodic)
        return copy

    @property
    def handlers(self) -> HandlerRegistry:
        """The handlers, with the topics that each processes."""
        return self._handlers

    @property
    def periodic_handlers(self) -> tuple[PeriodicHandler, ...]:
        """The periodic handlers."""
        return tuple(self._periodic)

    # --- life ---------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Start, and handle records until SIGTERM or SIGINT: the main call of a process.

        The first signal stops the worker: no further record starts, running handlers finish within
        `shutdown_timeout_ms`, finished records are committed. A second signal cancels the handlers.
        Call it in the main thread.

        Raises: the error that stopped it: of a handler whose policy is "stop", a dead letter
        that was rejected, a consumer that cannot continue; as `start`.
        """
        error: BaseException | None = None
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as group:
                group.start_soon(self._on_signals, signals)
                try:
                    await self._run_until_stopped()
                except Exception as raised:  # not within an ExceptionGroup
                    error = raised
                group.cancel_scope.cancel()
        if error is not None:
            raise error
        self._raise_failure()

    async def _run_until_stopped(self) -> None:
        try:
            with anyio.CancelScope() as scope:
                self._start_scope = scope
                if not self._stop.is_set():
                    await self.start()
            self._start_scope = None
            if not scope.cancelled_caught:
                await self._until_stopped()
        finally:
            await self._close(None)

    async def _on_signals(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for number in signals:
            if self._stop.is_set():
                logger.warning("%s again: handlers are cancelled", number.name)
                if self._runtime is not None:
                    self._runtime.hurry()
                continue
            logger.info("%s: the worker of group %r stops", number.name, self.config.group)
            self.stop()

    def stop(self) -> None:
        """Ask `run` to stop, as SIGTERM does. Returns at once."""
        self._stop.set()
        if self._start_scope is not None:
            self._start_scope.cancel()

    async def _until_stopped(self) -> None:
        assert self._runtime is not None
        async with anyio.create_task_group() as group:

            async def wait(event: anyio.Event) -> None:
                await event.wait()
                group.cancel_scope.cancel()

            group.start_soon(wait, self._stop)
            group.start_soon(wait, self._runtime.stopped)

    async def start(self) -> None:
        """Connect, join the group, and begin to handle records.

        Raises: ConfigurationError: it has no handlers; ClosedError: it was started before; as
        `Producer.start` and `Consumer.start`.
        """
        if self._is_closed or self._runtime is not None:
            raise ClosedError("this worker was already started; create a new one")
        self._runtime = Runtime(self.config, self._handlers, self._periodic, self._hooks, self._rng, self._events)
        await self._runtime.start()

    async def close(self, timeout: float | None = None) -> None:
        """Stop: running handlers finish within `timeout` seconds (default: `shutdown_timeout_ms`).

        May be called from any task, and repeatedly. In a cancelled task handlers are cancelled at
        once.

        Raises: the error that stopped the worker, as `run`.
        """
        await self._close(timeout)
        self._raise_failure()

    async def _close(self, timeout: float | None) -> None:
        self._is_closed = True
        runtime = self._runtime
        if runtime is None:
            return
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            runtime.hurry()
        with anyio.CancelScope(shield=True):  # bounded by its own timeouts
            await runtime.close(timeout)
        self._events.close()

    async def wait(self) -> None:
        """Wait until the worker has stopped, because of an error or `close`.

        Raises: the error that stopped it, as `run`; ClosedError: it was not started.
        """
        if self._runtime is None:
            raise ClosedError("the worker was not started")
        await self._runtime.stopped.wait()
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure = self.failure
        if failure is not None:
            raise failure

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close(None)
        if error is None:
            self._raise_failure()

    # --- monitoring ---------------------------------------------------------------------------------------------------

    @property
    def failure(self) -> BaseException | None:
        """The error that stopped the worker; None while it runs, and after it was closed."""
        return None if self._runtime is None else self._runtime.failure

    def health(self) -> WorkerHealth:
        """Return the state now: what holds back each partition and for how long, pending retries,
        consumer and producer. It sends no request. Call it on the worker's loop.

        Raises: ClosedError: the worker was not started.
        """
        if self._runtime is None:
            raise ClosedError("the worker was not started")
        return self._runtime.health()

    def events(self, *, limit: int = LIMIT) -> EventStream[WorkerEvent]:
        """Return a stream of later events: circuits that open and close. It ends when the worker is
        closed.

        Keeps up to `limit` events for a slow listener; the oldest are dropped and counted.
        """
        return self._events.listen(limit=limit)

    def metrics(self) -> list[Sample]:
        """Return all metrics now, those of its consumer and producer included, from any thread;
        docs/metrics.md lists them. None before the start."""
        return [] if self._runtime is None else self._runtime.metrics()

    @property
    def in_flight(self) -> int:
        """The number of records that are fetched and not finished."""
        return 0 if self._runtime is None else self._runtime.queue.in_flight

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset() if self._runtime is None else frozenset(self._runtime.queue.partitions)

    def __repr__(self) -> str:
        state = "new" if self._runtime is None else "closed" if self._is_closed else "started"
        return f"<Worker {self.config.group!r} {state}, {len(self._handlers)} handler(s), {self.in_flight} in flight>"
