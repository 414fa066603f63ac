"""Closes a producer: delivers accepted records within a timeout, fails the rest, disconnects."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from aiokwire.clock import loop_time, wall_ms
from aiokwire.cluster import Client
from aiokwire.errors import ClosedError
from aiokwire.producer._delivery import Batch
from aiokwire.producer.batch_failures import any_batch
from aiokwire.producer.batch_results import records_of
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.core import ProducerCore
from aiokwire.types import Headers

if TYPE_CHECKING:
    from aiokwire.cluster import MetricsPush

# Seconds for closing the connections after every record was delivered or failed.
LAST_SECONDS = 1.0
# Seconds for which `close` without a timeout delivers in a task that was cancelled, by SIGINT or `asyncio.timeout` for
# example.
CANCELLED_CLOSE_SECONDS = 3.0
REASON = "this producer was closed"


def seconds_to_deliver(timeout: float | None, config: ProducerConfig) -> float:
    """The seconds for which a `close(timeout)` in the current task may deliver."""
    if timeout is not None:
        return timeout
    longest = config.delivery_timeout
    if config.transactional_id is not None:
        longest = max(longest, config.transaction_timeout)
    task = asyncio.current_task()
    return min(CANCELLED_CLOSE_SECONDS, longest) if task is not None and task.cancelling() else longest


class Undelivered(NamedTuple):
    """A record that `close` could not deliver; a record that was in flight may still have arrived.

    `partition` is -1 without the topic's metadata, unless the record named a partition.
    """

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    in_flight: bool


def undelivered_of(batch: Batch) -> list[Undelivered]:
    """The records of a batch that failed."""
    flying = batch.attempts > 0
    if batch.parked is not None:
        return [undelivered_record((batch.topic, *record)) for _, _, record in filter(None, batch.parked)]
    return [
        Undelivered(batch.topic, batch.partition, record.key, record.value, record.headers, record.timestamp, flying)
        for record in records_of(batch)
    ]


def undelivered_record(record: tuple[Any, ...]) -> Undelivered:
    """A record that was in no batch of a partition, as `Accumulator.append` takes it."""
    topic, value, key, partition, timestamp, headers, _ = record
    stamp = wall_ms() if timestamp is None else timestamp
    return Undelivered(topic, -1 if partition is None else partition, key, value, headers or (), stamp, False)


class Closing:
    """The first close of a producer, for which later calls wait."""

    def __init__(self) -> None:
        self._scope: anyio.CancelScope | None = None  # of the delivery
        self._deadline = math.inf  # on the loop's clock
        self._ended = anyio.Event()

    def end(self) -> None:
        """Wake the calls of `wait`: the producer is closed now."""
        self._ended.set()

    async def wait(self, seconds: float) -> None:
        """Wait for the end, at most `seconds`."""
        self._deadline = min(self._deadline, loop_time() + seconds)
        if self._scope is not None:
            self._scope.deadline = self._deadline
        await self._ended.wait()

    async def run(
        self, client: Client, core: ProducerCore, seconds: float, *, push: MetricsPush | None, observed: bool
    ) -> list[Undelivered]:
        """Deliver for at most `seconds`, then disconnect and return the undelivered records. They
        are logged unless they are `observed`: returned to a caller that is not cancelled. `push`
        sends its last metrics."""
        delivered = False
        batches: list[Batch] = []
        try:
            self._deadline = min(self._deadline, loop_time() + seconds)
            with anyio.CancelScope(deadline=self._deadline) as self._scope:
                if core.transactions is not None:
                    await core.transactions.close(seconds)
                core.accumulator.close(REASON)
                if core.accumulator.live or len(core.line):
                    await core.flush()
            delivered = True
        finally:
            left = _fail_undelivered(core, batches, report=not (observed and delivered))
            if push is not None:
                with anyio.CancelScope(shield=True):
                    await push.terminate()
            with anyio.CancelScope(shield=True, deadline=loop_time() + LAST_SECONDS):
                await client.close()
        if observed:
            for batch in batches:
                batch.mark_observed()
        return left


def _fail_undelivered(core: ProducerCore, batches: list[Batch], *, report: bool) -> list[Undelivered]:
    waiting = core.stop(REASON, report=report)
    core.end()
    left: list[Undelivered] = []
    for batch in core.failures.withdraw(any_batch):
        left += undelivered_of(batch)
        batches.append(batch)
        core.failures.fail(batch, ClosedError(f"{REASON} before the record was delivered"))
    return left + [undelivered_record(record) for record in waiting]
