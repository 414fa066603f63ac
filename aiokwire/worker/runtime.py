"""A started worker: its clients, its tasks, and the order in which they start and stop.

fetch -> WorkQueue -> executors -> Settlement -> Committer
"""

from __future__ import annotations

import contextlib
import logging
import math
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, cast

import anyio

from aiokwire.clock import background_pause, loop_time
from aiokwire.cluster import Supervisor
from aiokwire.consumer import Consumer, ConsumerRecord
from aiokwire.errors import ClosedError, ConfigurationError, KafkaError
from aiokwire.events import Events
from aiokwire.hooks import Hooks, hooks_for
from aiokwire.metrics import Sample
from aiokwire.producer import Delivery, Producer
from aiokwire.types import Guarantee, OffsetAndMetadata, Order, RecordMetadata, TopicPartition
from aiokwire.worker.circuits import Circuits, WorkerEvent
from aiokwire.worker.committer import Committer, EarlyCommitter, Finished, OffsetCommitter
from aiokwire.worker.completed_offsets import CompletedOffsets
from aiokwire.worker.config import WorkerConfig, check_single_attempt
from aiokwire.worker.context import Output
from aiokwire.worker.dead_letters import DeadLetters, Origin
from aiokwire.worker.delayed_records import DelayedRecords, PartitionPauses
from aiokwire.worker.executor import Executor, Executors, RetryTimer, Turn
from aiokwire.worker.handlers import Handler, HandlerRegistry, as_pattern
from aiokwire.worker.health import ProgressMonitor, WorkerHealth
from aiokwire.worker.metrics import labels_of, samples_of
from aiokwire.worker.observed import attempt_of
from aiokwire.worker.ordering import InFlightRecord
from aiokwire.worker.outcomes import RetryPolicy
from aiokwire.worker.periodic import PeriodicHandler
from aiokwire.worker.periodic_runs import Assignments, PeriodicRun, PeriodicRuns
from aiokwire.worker.rate_limit import RateLimit, RateLimiter
from aiokwire.worker.rebalance import CANCEL_TIMEOUT, WorkerListener
from aiokwire.worker.recovery import RenewableProducer
from aiokwire.worker.retry_topics import RetryTopics
from aiokwire.worker.settlement import Settlement
from aiokwire.worker.transactional import DeadLetterSender, TransactionCommitter
from aiokwire.worker.work_queue import HandlerLine, WorkQueue

logger: logging.Logger = logging.getLogger("aiokwire.worker")

Groups = Mapping[TopicPartition, Sequence[ConsumerRecord[bytes, bytes]]]

# One wait for records (seconds). The consumer counts it as activity of the application.
POLL: Final = 1.0
# How long (seconds) each step after the handlers may take when the worker stops: the last commit, leaving the group,
# delivering what was accepted.
LAST_STEP_TIMEOUT: Final = 5.0
# And all of them together, with the end of cancelled handlers. Each step has at least a moment.
LAST_STEPS_TIMEOUT: Final = 17.0
MOMENT: Final = 0.5


class DirectOutlet:
    """Sends what handlers send at once, or with exactly-once leaves it to the transactions."""

    def __init__(self, producer: Producer[bytes, bytes], retry_topics: RetryTopics, *, holds_outputs: bool) -> None:
        self.holds_outputs = holds_outputs
        self.is_stopping: bool = False
        self._producer = producer
        self._retry_topics = retry_topics

    def stop(self) -> None:
        """Have handlers see that the worker is being stopped."""
        self.is_stopping = True

    def origin_of(self, record: ConsumerRecord[bytes, bytes]) -> Origin:
        """See `Outlet`."""
        return self._retry_topics.origin_of(record)

    async def send(self, output: Output) -> RecordMetadata:
        """See `Outlet`."""
        topic, value, key, partition, timestamp, headers = output
        return await self._producer.send(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)

    async def submit(self, output: Output) -> Delivery:
        """See `Outlet`."""
        topic, value, key, partition, timestamp, headers = output
        return await self._producer.submit(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)


class Runtime:
    """Runs from `start` to `close`. `stopped` is set when it has stopped by itself; `failure` is
    why, or what made a handler's record impossible to settle."""

    def __init__(
        self,
        config: WorkerConfig,
        handlers: HandlerRegistry,
        periodic: Sequence[PeriodicHandler],
        hooks: Hooks | None,
        rng: random.Random,
        events: Events[WorkerEvent],
    ) -> None:
        """Raises: ConfigurationError: there are no handlers, or options contradict each other."""
        if not len(handlers):
            raise ConfigurationError('the worker has no handlers: add one with @worker.handler("topic")')
        self.failure: BaseException | None = None
        self.stopped: anyio.Event = anyio.Event()
        self._config = config
        self._handlers = handlers
        self._hooks = hooks_for(hooks, config.client_id, config.group)
        self._lines: dict[Handler, HandlerLine] = {}
        self._is_early = config.guarantee is Guarantee.AT_MOST_ONCE
        self._is_transactional = config.guarantee is Guarantee.EXACTLY_ONCE
        self._producers = RenewableProducer(
            config.new_producer_config(rng),
            lambda config: Producer(config=config, hooks=hooks, rng=rng),
            has_own_id=config.transactional_id is None and config.group_instance_id is None,
        )
        self.consumer: Consumer[bytes, bytes] = Consumer(config=config.new_consumer_config(), hooks=hooks, rng=rng)
        self.queue: WorkQueue = WorkQueue(
            Order.parse(config.order), config.max_in_flight_records, config.max_in_flight_bytes, self._fetch_again
        )
        self._retry_topics = RetryTopics(config.retry_topic, config.group, self._delays_of)
        self._pauses = PartitionPauses(self.consumer)
        self._delayed = DelayedRecords(self.queue, self._pauses)
        self._circuits = Circuits(config.group, self.queue, self._pauses, events)
        self._limiters: dict[RateLimit, RateLimiter] = {}
        producer = self._producers.current
        self._outlet = DirectOutlet(producer, self._retry_topics, holds_outputs=self._is_transactional)
        self._dead_letters = self._letters_through(producer)
        self._timer = RetryTimer(self.queue)
        self._committer = self._new_committer(rng)
        publisher = self._committer if isinstance(self._committer, TransactionCommitter) else None
        self._settlement = Settlement(
            self.queue, self._timer, self._dead_letters_for, self._retry_topics, publisher, rng, self.fail
        )
        self._periodic = self._new_periodic(periodic, publisher, rng)
        turn = Turn()
        self._workers = [Executor(self.queue, self._settlement, self._outlet, turn) for _ in range(config.concurrency)]
        timeouts = [self._line(handler).timeout for handler in handlers]
        self._executors = Executors(self._workers, min(timeouts, default=math.inf))
        self._progress = ProgressMonitor(config.stalled_after)
        self._fetching = anyio.CancelScope()
        self._draining = anyio.CancelScope()
        self._has_retry_topics = any(self._policy(handler).delays for handler in handlers)
        self._is_hurried = False
        self._close_by = math.inf  # on the loop's clock
        self._ending = anyio.Lock()
        self._has_left = False
        self._has_tasks = False
        self._supervisor = Supervisor(f"worker of group {config.group!r}", self._on_end)

    def _new_committer(self, rng: random.Random) -> Committer:
        config = self._config
        finished = Finished(self.consumer, self.queue, config.offset_metadata_max_bytes)
        if self._is_transactional:
            return TransactionCommitter(
                self._producers, self.consumer, finished, self.queue, config.commit_interval, rng, self.fail
            )
        kind = EarlyCommitter if self._is_early else OffsetCommitter
        return kind(self.consumer, finished, self.queue, config.commit_interval, self.fail)

    def _new_periodic(
        self, handlers: Sequence[PeriodicHandler], publisher: TransactionCommitter | None, rng: random.Random
    ) -> PeriodicRuns:
        assignments = Assignments(self.queue, self._handlers)
        runs = []
        for each in handlers:
            assignments.check(each)
            timeout = each.timeout if each.timeout is not None else self._config.handler_timeout
            runs.append(PeriodicRun(each, timeout, assignments, self._outlet, publisher, self._hooks, rng, self.fail))
        return PeriodicRuns(runs)

    def _dead_letters_for(self, item: InFlightRecord) -> DeadLetters:
        if isinstance(self._committer, TransactionCommitter):
            return self._letters_through(cast("Producer[bytes, bytes]", DeadLetterSender(self._committer, item)))
        return self._dead_letters

    def _letters_through(self, sender: Producer[bytes, bytes]) -> DeadLetters:
        config = self._config
        return DeadLetters(sender, config.dead_letter_topic, group_id=config.group, retry_topics=self._retry_topics)

    def _policy(self, handler: Handler) -> RetryPolicy:
        return handler.retry if handler.retry is not None else self._config.retry_policy

    def _delays_of(self, topic: str) -> Sequence[float]:
        """Return the delays of the retry topics of a topic; none if it has no handler."""
        handler = self._handlers.get(topic)
        return () if handler is None else self._policy(handler).delays

    def _line(self, handler: Handler) -> HandlerLine:
        line = self._lines.get(handler)
        if line is None:
            policy = self._policy(handler)
            if self._is_early:
                check_single_attempt(f"the policy of handler {handler.name}", policy)
                if handler.circuit_breaker is not None:
                    raise ConfigurationError(
                        f'handler {handler.name}: a circuit breaker repeats calls, and delivery="at-most-once" does not'
                    )
            _check_bounds(handler, self._config.max_in_flight_records)
            line = self._lines[handler] = self._new_line(handler, policy)
        return line

    def _new_line(self, handler: Handler, policy: RetryPolicy) -> HandlerLine:
        timeout = handler.timeout if handler.timeout is not None else self._config.handler_timeout
        breaker = handler.circuit_breaker
        circuit = None if breaker is None else self._circuits.of(breaker, handler.name)
        limits = dict.fromkeys((self._config.rate_limit, handler.rate_limit))
        limiters = [self._limiter(limit) for limit in limits if limit is not None]
        return HandlerLine(handler, policy, timeout, attempt_of(handler, self._hooks, circuit), limiters, circuit)

    def _limiter(self, limit: RateLimit) -> RateLimiter:
        if limit not in self._limiters:
            self._limiters[limit] = RateLimiter(limit, self.queue.wake)
        return self._limiters[limit]

    def metrics(self) -> list[Sample]:
        """Return the metrics of the worker and its clients; from any thread."""
        labels = labels_of(self.consumer.config.client_id, self._config.group)
        active = sum(one.item is not None for one in self._workers)
        own = samples_of(
            labels,
            list(self._lines.values()),
            in_flight=sum(partition.in_flight for partition in list(self.queue.partitions.values())),
            active=active,
            concurrency=len(self._workers),
        )
        clients = self.consumer.metrics() + self._producers.current.metrics()
        return own + self._circuits.samples(labels) + self._periodic.samples(labels) + clients

    def health(self) -> WorkerHealth:
        """Return the state of the worker and its clients; on the loop."""
        put_off = self._timer.records
        partitions = self._progress.look(loop_time(), self.queue.partitions.values(), self._workers, put_off)
        return WorkerHealth(
            self.consumer.health(),
            self._producers.current.health(),
            partitions,
            retries=sum(item.count for item in put_off),
            running=sum(one.item is not None for one in self._workers),
            failure=self.failure,
        )

    # --- start --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the clients and the tasks; after an error everything is closed again.

        Raises: as `Producer.start`, `Consumer.start`.
        """
        try:
            await self._producers.current.start()
            await self._subscribe()
            await self._supervisor.start()
            self._has_tasks = True
            self._spawn(self._timer.run, "retries")
            self._spawn(self._settlement.await_deliveries, "deliveries")
            self._spawn(self._committer.run, "commits")
            self._spawn(self._executors.watch_timeouts, "timeouts of handlers")
            for number, executor in enumerate(self._workers):
                self._spawn(executor.run, f"executor {number}")
            await self.consumer.start()
            self._spawn(self._fetch, "fetch")
            for each in self._periodic:
                self._spawn(each.run, f"periodic handler {each.handler.name}")
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._end()
            raise

    async def _subscribe(self) -> None:
        listener = WorkerListener(
            self.consumer,
            self.queue,
            self._executors,
            self._committer,
            lambda topic: self._line(self._handlers.find(topic)),
            self._retry_topics,
            self._pauses,
            self._circuits,
            revoke_timeout=self._config.revoke_timeout,
            finish_queued=self._is_early,
            needs_metadata=self._is_transactional,
        )
        pattern = self._handlers.pattern
        if pattern is None:
            retry_topics = await self._prepare_retry_topics()
            await self.consumer.subscribe(*self._handlers.topics, *retry_topics, listener=listener)
            return
        own = [
            self._retry_topics.pattern(as_pattern(topic), policy.delays)
            for handler in self._handlers
            if (policy := self._policy(handler)).delays
            for topic in handler.topics
        ]
        wanted = re.compile("|".join((pattern.pattern, *own)))
        excluded = re.compile(f"{self._dead_letters.topics.pattern}|{self._retry_topics.foreign_pattern(own)}")
        await self.consumer.subscribe(wanted, exclude=excluded, listener=listener)

    async def _prepare_retry_topics(self) -> list[str]:
        """Return the names of the retry topics; creates those that are missing, if that is allowed.

        Raises: KafkaError: one does not exist, or is forbidden.
        """
        topics = self._handlers.topics
        names = [name for topic in topics for name in self._retry_topics.names(topic)]
        for name in names:
            if name in topics:
                raise ConfigurationError(f"topic {name} has a handler and is a retry topic: pass another retry_topic")
            try:
                await self._producers.current.partitions_for(name)
            except KafkaError as error:
                raise KafkaError(
                    f"group {self._config.group!r} cannot use the retry topic {name!r}: {error}. Create it (with the "
                    "partitions and the retention that its delay needs) and permit reading and writing, or choose a "
                    "RetryPolicy without delays"
                ) from error
        return names

    def _spawn(self, func: Callable[[], Awaitable[object]], name: str) -> None:
        self._supervisor.spawn(self._guard, func, name=f"worker: {name}")

    async def _guard(self, func: Callable[[], Awaitable[object]]) -> None:
        """Run a task; its error stops the worker gracefully."""
        try:
            await func()
        except Exception as error:
            self.fail(error)

    # --- records ------------------------------------------------------------------------------------------------------

    async def _fetch(self) -> None:
        """Read records until the worker stops."""
        poll = background_pause(POLL)
        while not self._outlet.is_stopping:
            wanted = self.queue.wanted(self._config.max_poll_records)
            groups: Groups = {}
            with anyio.CancelScope() as self._fetching:
                groups = await self.consumer.getmany(wanted.limit, poll, wanted.partitions, by_partition=True)
            if not groups or self._outlet.is_stopping:
                continue
            if self._is_early and not await self._claim(groups):
                continue
            self._admit(groups)

    def _fetch_again(self) -> None:
        """Read again, because a partition has room now."""
        self._fetching.cancel()

    def _admit(self, groups: Groups) -> None:
        for tp, records in groups.items():
            partition = self.queue.partitions.get(tp)
            if partition is not None and records[0].offset < partition.completed.next_offset:
                logger.warning(
                    "%s: continuing at offset %d, before records that were read already: the log was truncated or "
                    "recreated",
                    tp,
                    records[0].offset,
                )
                self.queue.assign(tp, partition.handler_line, CompletedOffsets(), partition.delay, partition.stored)
        if self._has_retry_topics:
            groups = self._delayed.due(groups)
        self.queue.admit(groups)

    async def _claim(self, groups: Groups) -> bool:
        """Commit records before they are handled; if that fails, they are read again."""
        committer = cast("EarlyCommitter", self._committer)
        offsets = {
            tp: OffsetAndMetadata(records[-1].offset + 1, leader_epoch=records[-1].leader_epoch)
            for tp, records in groups.items()
        }
        if await committer.claim(offsets, self._config.default_api_timeout):
            return True
        self.consumer.rewind({tp: records[0].offset for tp, records in groups.items()})
        await anyio.sleep(self._config.retry_backoff)
        return False

    # --- stop ---------------------------------------------------------------------------------------------------------

    def fail(self, error: BaseException) -> None:
        """Stop because of an error: start no further record, finish those that run, and close."""
        if self._outlet.is_stopping:
            if self.failure is None:
                self.failure = error
            return
        self.failure = error
        logger.error("the worker of group %r stops: %s: %s", self._config.group, type(error).__name__, error)
        self._stop_reading(finish_queued=False)
        with contextlib.suppress(ClosedError):  # it is being closed already
            self._supervisor.spawn(self._leave_after_failure, name="worker: end after a failure")

    async def _leave_after_failure(self) -> None:
        await self._leave(self._config.shutdown_timeout)

    def _stop_reading(self, *, finish_queued: bool) -> None:
        self._outlet.stop()
        self._fetching.cancel()
        self.queue.close_partitions(list(self.queue.partitions), finish_queued=finish_queued)

    def hurry(self) -> None:
        """Cancel running handlers now, instead of waiting for them."""
        self._is_hurried = True
        self._draining.cancel()

    async def close(self, timeout: float | None = None) -> None:
        """Stop: finish running handlers within `timeout` seconds (default: shutdown_timeout_ms),
        commit, deliver, leave the group."""
        if not self._outlet.is_stopping:
            self._stop_reading(finish_queued=self._is_early)
        await self._leave(self._config.shutdown_timeout if timeout is None else timeout)
        await self._end()

    async def _leave(self, timeout: float) -> None:
        async with self._ending:
            if self._has_left:
                return
            await self._drain(0.0 if self._is_hurried else timeout)
            partitions = list(self.queue.partitions)
            await self._committer.commit(partitions, self._left())
            self.queue.remove(partitions)
            await self.consumer.close(self._left())
            self._has_left = True
            self.stopped.set()

    async def _drain(self, timeout: float) -> None:
        """Wait for running handlers; cancel them after `timeout` seconds, or when hurried."""
        partitions = list(self.queue.partitions)
        is_settled, end = False, loop_time() + timeout
        with anyio.CancelScope() as self._draining:
            is_settled = await self.queue.settle(partitions, timeout)
            await self._periodic.settle(end - loop_time())
        self._close_by = loop_time() + LAST_STEPS_TIMEOUT
        await self._interrupt_periodic()
        if is_settled:
            return
        cancelled = self._executors.interrupt(partitions)
        logger.warning(
            "group %r: %d record(s) were unfinished when the worker stopped, and are delivered again; %d handler(s) "
            "were cancelled",
            self._config.group,
            self.queue.in_flight,
            cancelled,
        )
        self.queue.close_partitions(partitions, finish_queued=False)
        if cancelled:
            await self.queue.settle(partitions, CANCEL_TIMEOUT)

    async def _interrupt_periodic(self) -> None:
        cancelled = self._periodic.interrupt()
        if cancelled:
            logger.warning("group %r: periodic handlers were cancelled: %s", self._config.group, ", ".join(cancelled))
            await self._periodic.settle(CANCEL_TIMEOUT)

    async def _end(self) -> None:
        """Close the clients, and end the tasks."""
        self._delayed.close()
        self._circuits.close()
        for limiter in self._limiters.values():
            limiter.close()
        await self.consumer.close(self._left())
        self._supervisor.stop()
        if self._has_tasks:
            with anyio.move_on_after(self._left()):  # a transaction may wait for its coordinator
                await self._supervisor.wait()
        await self._producers.current.close(self._left())
        if self._has_tasks:
            await self._supervisor.wait()
        self.stopped.set()

    def _left(self) -> float:
        """Return how many seconds the next step may take."""
        return min(LAST_STEP_TIMEOUT, max(MOMENT, self._close_by - loop_time()))

    def _on_end(self, failure: BaseException | None) -> None:
        if failure is not None and self.failure is None:
            self.failure = failure
        self.stopped.set()


def _check_bounds(handler: Handler, most: int) -> None:
    bounds = handler.bounds
    if bounds is not None and bounds.max_records > most:
        raise ConfigurationError(
            f"handler {handler.name}: max_records ({bounds.max_records}) must not exceed max_in_flight_records ({most})"
        )
