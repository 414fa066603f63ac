"""What follows an attempt: completed, retried, skipped, sent to the dead-letter topic, or the end.

A record counts as completed only when what its handler sent, or its dead letter, is acknowledged.
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
from aiokwire.worker.context import Context, Output
from aiokwire.worker.dead_letters import DeadLetters
from aiokwire.worker.outcomes import Action, Skip, decide
from aiokwire.worker.work_queue import InFlightRecord, WorkQueue

if TYPE_CHECKING:
    from aiokwire.worker.executor import RetryTimer

logger = logging.getLogger("aiokwire.worker")


class Publisher(Protocol):
    """Sends what a handler held back until it returned."""

    async def publish(self, item: InFlightRecord, outputs: list[Output]) -> None:
        """Add records to the transaction of the record's offset.

        Raises: KafkaError: one of them was refused; none counts.
        """


class Settlement:
    """Decides and carries out what follows each attempt."""

    def __init__(
        self,
        queue: WorkQueue,
        timer: RetryTimer,
        dead_letters_for: Callable[[InFlightRecord], DeadLetters],
        publisher: Publisher | None,
        rng: random.Random,
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        """`dead_letters_for` returns what sends the dead letter of a record; `publisher`: with
        exactly-once; `on_fatal` stops the worker."""
        self._queue = queue
        self._timer = timer
        self._dead_letters_for = dead_letters_for
        self._publisher = publisher
        self._rng = rng
        self._on_fatal = on_fatal
        self._undelivered: deque[tuple[InFlightRecord, list[Delivery]]] = deque()
        self._arrived = anyio.Event()

    async def finish(self, item: InFlightRecord, context: Context) -> None:
        """Settle a record whose handler returned, after having sent something."""
        if context.held is not None:
            assert self._publisher is not None
            try:
                await self._publisher.publish(item, context.held)
            except KafkaError as error:
                await self.fail(item, error)
                return
        self._queue.release(item)
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
                is_completed = await self._give_up(item, error, Action(item.partition.handler_line.policy.then))
            self._undelivered.popleft()
            self._end(item, is_completed=is_completed)

    async def fail(self, item: InFlightRecord, error: BaseException) -> None:
        """Settle a record whose attempt raised. Cancelled, it leaves the record as it was."""
        decision = decide(error, item.attempt, item.partition.handler_line.policy, self._rng)
        if decision.action is Action.RETRY:
            item.partition.handler_line.counts.followed(decision.action.value)
            what = _summary(error)
            logger.debug("%s: attempt %d failed, next in %.3f s: %s", _place(item), item.attempt, decision.delay, what)
            self._timer.put_off(item, decision.delay)
            return
        is_completed = await self._give_up(item, error, decision.action)
        self._queue.release(item)
        self._end(item, is_completed=is_completed)

    def _end(self, item: InFlightRecord, *, is_completed: bool) -> None:
        if is_completed:
            self._queue.complete(item)
        else:
            self._queue.abandon(item)

    async def _give_up(self, item: InFlightRecord, error: BaseException, action: Action) -> bool:
        """Carry out what follows the last attempt; return whether the record is completed."""
        item.partition.handler_line.counts.followed(action.value)
        if action is Action.STOP:
            self._on_fatal(_reason(item, error))
            return False
        if action is Action.DEAD_LETTER:
            return await self._send_dead_letter(item, error)
        level = logging.INFO if isinstance(error, Skip) else logging.WARNING
        logger.log(level, "%s: skipped after %d attempt(s): %s", _place(item), item.attempt, _summary(error))
        return True

    async def _send_dead_letter(self, item: InFlightRecord, error: BaseException) -> bool:
        """Return whether the dead letter is acknowledged; stop the worker if it is refused."""
        name = item.partition.handler_line.handler.name
        dead_letters = self._dead_letters_for(item)
        try:
            await dead_letters.send(item.record, error, attempts=item.attempt, handler=name)
        except KafkaError as refusal:
            topic = dead_letters.topic_for(item.record.topic)
            failure = KafkaError(
                f"{_place(item)}: handler {name} failed, and its dead letter could not be sent to topic {topic!r}: "
                f"{refusal}. The record was not committed and is delivered again after a restart. Create the topic or "
                f"permit writing to it, or choose RetryPolicy(then=...) (the handler's error: {_summary(error)})"
            )
            failure.__cause__ = refusal
            self._on_fatal(failure)
            return False
        return True


def _place(item: InFlightRecord) -> str:
    return f"{item.tp} at offset {item.record.offset}"


def _summary(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _reason(item: InFlightRecord, error: BaseException) -> BaseException:
    """Return why the worker stops: what is not an `Exception` itself, such as SystemExit."""
    what = f"handler {item.partition.handler_line.handler.name}, {_place(item)}, attempt {item.attempt}"
    if not isinstance(error, Exception):
        logger.error("%s: %s was raised: the worker stops, the record is not committed", what, _summary(error))
        return error
    failure = KafkaError(
        f"{what}: {_summary(error)}. Its policy stops the worker; the record was not committed and is delivered again "
        "after a restart"
    )
    failure.__cause__ = error
    return failure
