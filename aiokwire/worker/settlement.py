"""What follows an attempt: completed, retried, skipped, sent to a retry topic or the dead-letter
topic, or the end.

A record counts as completed only when what its handler sent, or what was produced of it, is
acknowledged.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import anyio

from aiokwire.errors import KafkaError
from aiokwire.producer import Delivery
from aiokwire.types import TopicPartition
from aiokwire.worker.batch_settlement import BatchSettlement
from aiokwire.worker.context import Context, Output
from aiokwire.worker.dead_letters import DeadLetters, message_of
from aiokwire.worker.ordering import InFlightRecord
from aiokwire.worker.outcomes import Action, Decision, Skip, decide
from aiokwire.worker.retry_topics import RetryTopics, attempts_of, rounds_of
from aiokwire.worker.work_queue import InFlightBatch, Work, WorkQueue

if TYPE_CHECKING:
    from aiokwire.worker.executor import RetryTimer

logger: logging.Logger = logging.getLogger("aiokwire.worker")


class Source(Protocol):
    """The cause of sent records: a record, a batch, or a run of a periodic handler."""

    @property
    def place(self) -> str:
        """For logs and errors."""

    @property
    def tp(self) -> TopicPartition | None:
        """The partition without which the records must not be sent."""


class Publisher(Protocol):
    """Sends what a handler held back until it returned."""

    async def publish(self, source: Source, outputs: list[Output]) -> None:
        """Add records to a transaction, that of the record's offset.

        Raises: KafkaError: one of them was rejected; none counts.
        """


class Settlement:
    """Decides and carries out what follows each attempt."""

    def __init__(
        self,
        queue: WorkQueue,
        timer: RetryTimer,
        dead_letters_for: Callable[[InFlightRecord], DeadLetters],
        retry_topics: RetryTopics,
        publisher: Publisher | None,
        rng: random.Random,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        """`dead_letters_for` returns what sends a record that failed; `publisher`: with
        exactly-once; `on_fatal` stops the worker."""
        self._queue = queue
        self._timer = timer
        self._dead_letters_for = dead_letters_for
        self._retry_topics = retry_topics
        self._publisher = publisher
        self._rng = rng
        self._on_fatal = on_fatal
        self._undelivered: deque[tuple[Work, list[Delivery]]] = deque()
        self._arrived = anyio.Event()
        self._batches = BatchSettlement(queue, timer, self._decide, self._give_up)

    async def finish(self, item: Work, context: Context) -> None:
        """Settle a record whose handler returned, after having sent something; or a batch, of which
        it may have reported records."""
        item.track()
        if context.held is not None:
            assert self._publisher is not None
            try:
                await self._publisher.publish(item, context.held)
            except KafkaError as error:
                await self.fail(item, error)
                return
        if isinstance(item, InFlightBatch) and context.failures is not None:
            done = [record for record in item.record if record.offset not in context.failures]
            self._await(self._queue.part_off(item, done), context)
            await self._batches.fail(item, context.failures)
            return
        self._queue.release(item)
        self._await(item, context)

    def _await(self, item: Work, context: Context) -> None:
        """Complete a released record, once what its handler sent is acknowledged."""
        if context.deliveries is None:
            self._queue.complete(item)
        else:
            self._undelivered.append((item, context.deliveries))
            self._arrived.set()

    async def await_deliveries(self) -> None:
        """Complete records once everything that they sent is acknowledged, until cancelled."""
        while True:
            while not self._undelivered:
                self._arrived = anyio.Event()
                await self._arrived.wait()
            item, deliveries = self._undelivered[0]
            is_completed = True
            try:
                for delivery in deliveries:
                    await delivery
            except KafkaError as error:
                is_completed = await self._give_up_delivered(item, error)
            self._undelivered.popleft()
            self._end(item, is_completed=is_completed)

    async def _give_up_delivered(self, item: Work, error: KafkaError) -> bool:
        singles = item.singles() if isinstance(item, InFlightBatch) else [item]
        return all([await self._give_up(each, error, _last(each)) for each in singles])

    async def fail(self, item: Work, error: BaseException) -> None:
        """Settle a record whose attempt raised. Cancelled, it leaves the record as it was."""
        circuit = item.partition.handler_line.circuit
        if circuit is not None and circuit.failed(error):
            item.partition.handler_line.counts.followed("postpone", item.count)
            self._queue.postpone(item)
            return
        if isinstance(item, InFlightBatch):
            await self._batches.fail(item, dict.fromkeys(item.offsets, error))
            return
        decision = self._decide(item, error)
        if decision.action is Action.RETRY:
            item.partition.handler_line.counts.followed(decision.action.value)
            what = _summary(error)
            logger.debug("%s: attempt %d failed, next in %.3f s: %s", item.place, item.attempt, decision.delay, what)
            self._timer.put_off(item, decision.delay)
            return
        is_completed = await self._give_up(item, error, decision)
        self._queue.release(item)
        self._end(item, is_completed=is_completed)

    def _decide(self, item: InFlightRecord, error: BaseException) -> Decision:
        policy = item.partition.handler_line.policy
        if not item.partition.delay:
            return decide(error, item.attempt, policy, self._rng)
        return decide(error, item.attempt - attempts_of(item.record), policy, self._rng, rounds_of(item.record))

    def _end(self, item: Work, *, is_completed: bool) -> None:
        if is_completed:
            self._queue.complete(item)
        else:
            self._queue.abandon(item)

    async def _give_up(self, item: InFlightRecord, error: BaseException, decision: Decision) -> bool:
        """Carry out what follows the last attempt; return whether the record is completed."""
        action = decision.action
        item.partition.handler_line.counts.followed(action.value)
        if action is Action.STOP:
            self._on_fatal(_reason(item, error))
            return False
        if action is Action.RETRY_TOPIC:
            return await self._send_to_retry_topic(item, error, decision.delay)
        if action is Action.DEAD_LETTER:
            return await self._send_dead_letter(item, error)
        level = logging.INFO if isinstance(error, Skip) else logging.WARNING
        logger.log(level, "%s: skipped after %d attempt(s): %s", item.place, item.attempt, _summary(error))
        return True

    async def _send_dead_letter(self, item: InFlightRecord, error: BaseException) -> bool:
        """Return whether the dead letter is acknowledged; stop the worker if it is refused."""
        name = item.partition.handler_line.handler.name
        dead_letters = self._dead_letters_for(item)
        try:
            await dead_letters.send(item.record, error, attempts=item.attempt, handler=name)
        except KafkaError as refusal:
            topic = dead_letters.topic_for(item.record.topic)
            what = f"its dead letter could not be sent to topic {topic!r}"
            self._on_fatal(_refused(item, error, refusal, what, "RetryPolicy(then=...)"))
            return False
        return True

    async def _send_to_retry_topic(self, item: InFlightRecord, error: BaseException, delay: float) -> bool:
        """Return whether the record is acknowledged in its retry topic; stop the worker if it is
        refused."""
        record = item.record
        dead_letters = self._dead_letters_for(item)
        topic = self._retry_topics.name(dead_letters.origin_of(record).topic, delay)
        try:
            await dead_letters.send_to_retry_topic(
                record,
                error,
                topic=topic,
                delay=delay,
                rounds=rounds_of(record) + 1 if item.partition.delay else 1,
                attempts=item.attempt,
                handler=item.partition.handler_line.handler.name,
            )
        except KafkaError as refusal:
            what = f"it could not be sent to the retry topic {topic!r}"
            self._on_fatal(_refused(item, error, refusal, what, "a RetryPolicy without delays"))
            return False
        return True


def _summary(error: BaseException) -> str:
    text = message_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _last(item: InFlightRecord) -> Decision:
    return Decision(Action(item.partition.handler_line.policy.then))


def _refused(item: InFlightRecord, error: BaseException, refusal: KafkaError, what: str, otherwise: str) -> KafkaError:
    """Return why the worker stops: a record that failed could not be produced."""
    failure = KafkaError(
        f"{item.place}: handler {item.partition.handler_line.handler.name} failed, and {what}: {refusal}. The record "
        "was not committed and is delivered again after a restart. Create the topic or permit writing to it, or "
        f"choose {otherwise} (the handler's error: {_summary(error)})"
    )
    failure.__cause__ = refusal
    return failure


def _reason(item: InFlightRecord, error: BaseException) -> BaseException:
    """Return why the worker stops: what is not an `Exception` itself, such as SystemExit."""
    what = f"handler {item.partition.handler_line.handler.name}, {item.place}, attempt {item.attempt}"
    if not isinstance(error, Exception):
        logger.error("%s: %s was raised: the worker stops, the record is not committed", what, _summary(error))
        return error
    failure = KafkaError(
        f"{what}: {_summary(error)}. Its policy stops the worker; the record was not committed and is delivered again "
        "after a restart"
    )
    failure.__cause__ = error
    return failure
