"""The end of a producer: deliver what was accepted within a bound, give up the rest, disconnect."""

from __future__ import annotations

import asyncio
import math

import anyio

from aiokwire.cluster import Client
from aiokwire.errors import ClosedError
from aiokwire.producer._delivery import Batch
from aiokwire.producer.batch_results import Undelivered, undelivered_of, undelivered_record
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.dispatcher import Dispatcher

# How many seconds closing the connections may take after everything was delivered or given up.
LAST_SECONDS = 1.0
# How many seconds `close` continues to deliver in a task that was cancelled (by SIGINT or `asyncio.timeout`, for
# example) when it has no timeout.
CANCELLED_CLOSE_SECONDS = 3.0
REASON = "this producer was closed"


def seconds_to_deliver(timeout: float | None, config: ProducerConfig) -> float:
    """How long a `close(timeout)` in the current task may deliver."""
    if timeout is not None:
        return timeout
    longest = config.delivery_timeout
    if config.transactional_id is not None:
        longest = max(longest, config.transaction_timeout)
    task = asyncio.current_task()
    return min(CANCELLED_CLOSE_SECONDS, longest) if task is not None and task.cancelling() else longest


class Closing:
    """One close, which later calls wait for."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None  # of the delivering
        self._deadline = math.inf  # on the loop's clock
        self._ended = anyio.Event()

    def end(self) -> None:
        """Nothing of the producer runs any more."""
        self._ended.set()

    async def wait(self, seconds: float) -> None:
        """Wait for the end, which comes in so many seconds at the latest."""
        self._deadline = min(self._deadline, anyio.current_time() + seconds)
        if self._scope is not None:
            self._scope.deadline = self._deadline
        await self._ended.wait()

    async def run(self, client: Client, dispatcher: Dispatcher, seconds: float, *, observed: bool) -> list[Undelivered]:
        """Deliver for at most so many seconds, then disconnect. The records left are logged unless they are `observed`:
        returned to the caller, who is not cancelled."""
        delivered = False
        batches: list[Batch] = []
        try:
            self._deadline = min(self._deadline, anyio.current_time() + seconds)
            with anyio.CancelScope(deadline=self._deadline) as self._scope:
                if dispatcher.transactions is not None:
                    await dispatcher.transactions.close(seconds)
                dispatcher.accumulator.close(REASON)
                if dispatcher.accumulator.live or len(dispatcher.line):
                    await dispatcher.flush()
            delivered = True
        finally:
            left = _abandon(dispatcher, batches, report=not (observed and delivered))
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + LAST_SECONDS):
                await client.close()
        if observed:
            for batch in batches:
                batch.mark_observed()
        return left


def _abandon(dispatcher: Dispatcher, batches: list[Batch], *, report: bool) -> list[Undelivered]:
    waiting = dispatcher.stop(REASON, report=report)
    dispatcher.end()
    left: list[Undelivered] = []
    for partition, batch in dispatcher.withdrawal.abandon():
        left += undelivered_of(batch)
        batches.append(batch)
        dispatcher.batch_results.give_up(partition, batch, ClosedError(f"{REASON} before the record was delivered"))
    return left + [undelivered_record(record) for record in waiting]
