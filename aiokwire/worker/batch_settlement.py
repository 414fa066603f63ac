"""Settles each record of a batch whose attempt failed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import anyio

from aiokwire.worker.outcomes import Action, Decision

if TYPE_CHECKING:
    from aiokwire.worker.executor import RetryTimer
    from aiokwire.worker.ordering import InFlightRecord
    from aiokwire.worker.signatures import RawRecord
    from aiokwire.worker.work_queue import InFlightBatch, WorkQueue

logger: logging.Logger = logging.getLogger("aiokwire.worker")

Decide = Callable[["InFlightRecord", BaseException], Decision]
GiveUp = Callable[["InFlightRecord", BaseException, Decision], Awaitable[bool]]


class Failed(NamedTuple):
    """A record that failed, and its next step."""

    item: InFlightRecord
    error: BaseException
    decision: Decision


class BatchSettlement:
    """Retries the records of a batch together, and gives up each on its own."""

    def __init__(self, queue: WorkQueue, timer: RetryTimer, decide: Decide, give_up: GiveUp) -> None:
        """`decide` returns what follows the failure of a record. `give_up` carries out what follows
        its last attempt, and returns whether the record is completed."""
        self._queue = queue
        self._timer = timer
        self._decide = decide
        self._give_up = give_up

    async def fail(self, batch: InFlightBatch, errors: Mapping[int, BaseException]) -> None:
        """Settle a batch of which every record failed. Cancelled, it leaves what was not settled.

        Args:
            batch: the batch that has run.
            errors: the error of each of its records, by offset.
        """
        items = [(item, errors[item.record.offset]) for item in batch.singles()]
        failed = [Failed(item, error, self._decide(item, error)) for item, error in items]
        fatal = next((each for each in failed if each.decision.action is Action.STOP), None)
        if fatal is not None:
            await self._give_up(*fatal)
            self._queue.release(batch)
            self._queue.abandon(batch)
            return
        await self._give_up_each(batch, [each for each in failed if each.decision.action is not Action.RETRY])
        retried = [each for each in failed if each.decision.action is Action.RETRY]
        if retried:
            self._retry(batch, retried)
        else:
            self._queue.release(batch)
            self._queue.complete(batch)

    def _retry(self, batch: InFlightBatch, failed: list[Failed]) -> None:
        delay = max(each.decision.delay for each in failed)
        batch.partition.handler_line.counts.followed(Action.RETRY.value, len(failed))
        error = failed[0].error
        logger.debug(
            "%s: attempt %d failed, next in %.3f s: %s: %s",
            batch.place,
            batch.attempt,
            delay,
            type(error).__name__,
            error,
        )
        self._timer.put_off(batch, delay)

    async def _give_up_each(self, batch: InFlightBatch, failed: Iterable[Failed]) -> None:
        """Give up records at the same time, and take them out of their batch.

        Each is completed at once: its dead letter and its offset belong to one transaction.
        """
        ended: list[RawRecord] = []

        async def give_up(each: Failed) -> None:
            is_completed = await self._give_up(*each)
            (self._queue.complete if is_completed else self._queue.abandon)(each.item)
            ended.append(each.item.record)

        try:
            async with anyio.create_task_group() as group:
                for each in failed:
                    group.start_soon(give_up, each)
        finally:
            if ended:
                self._queue.part_off(batch, ended)
