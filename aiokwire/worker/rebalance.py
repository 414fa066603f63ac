"""The worker's rebalance listener: finishes revoked partitions, resumes assigned ones."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import anyio

from aiokwire.consumer import Consumer, RebalanceListener
from aiokwire.errors import KafkaError
from aiokwire.types import OffsetAndMetadata, TopicPartition
from aiokwire.worker.circuits import Circuits
from aiokwire.worker.committer import Committer
from aiokwire.worker.completed_offsets import CompletedOffsets
from aiokwire.worker.delayed_records import PartitionPauses
from aiokwire.worker.executor import Executors
from aiokwire.worker.offset_metadata import decode_ranges
from aiokwire.worker.retry_topics import RetryTopics
from aiokwire.worker.work_queue import HandlerLine, WorkQueue

logger: logging.Logger = logging.getLogger("aiokwire.worker")

# How long (seconds) the commit of revoked partitions may take.
COMMIT_TIMEOUT: Final = 10.0
# How long (seconds) cancelled handlers may take to end.
CANCEL_TIMEOUT: Final = 5.0


class WorkerListener(RebalanceListener):
    """Keeps `WorkQueue` in step with the consumer's partitions."""

    def __init__(
        self,
        consumer: Consumer[bytes, bytes],
        queue: WorkQueue,
        executors: Executors,
        committer: Committer,
        line_for: Callable[[str], HandlerLine],
        retry_topics: RetryTopics,
        pauses: PartitionPauses,
        circuits: Circuits,
        *,
        revoke_timeout: float,
        finish_queued: bool,
        needs_metadata: bool,
    ) -> None:
        """`line_for` returns the line of a topic's handler. `finish_queued`: admitted records are
        committed already. `needs_metadata`: without the committed metadata nothing may be
        handled."""
        self._consumer = consumer
        self._queue = queue
        self._executors = executors
        self._committer = committer
        self._line_for = line_for
        self._retry_topics = retry_topics
        self._pauses = pauses
        self._circuits = circuits
        self._revoke_timeout = revoke_timeout
        self._finish_queued = finish_queued
        self._needs_metadata = needs_metadata

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Start with what the last commit names as finished."""
        new = sorted(tp for tp in partitions if tp not in self._queue.partitions)
        committed = await self._committed(new) if new else {}
        for tp in new:
            retry = self._retry_topics.find(tp.topic)
            line = self._line_for(tp.topic if retry is None else retry.topic)
            delay = 0.0 if retry is None else retry.delay
            stored = committed.get(tp)
            self._queue.assign(tp, line, completed_of(stored), delay, stored)
        self._circuits.assigned(new)

    async def _committed(self, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        try:
            return await self._consumer.committed(*partitions)
        except KafkaError as error:
            if self._needs_metadata:
                raise
            logger.warning(
                "group %r: the metadata of the last commits could not be read, so that records that were finished "
                "beyond them are handled again: %s",
                self._consumer.config.group_id,
                error,
            )
            return {}

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Finish running handlers within the bound, commit, and forget the partitions."""
        if self._queue.partitions.keys().isdisjoint(partitions):
            return  # the worker has stopped
        self._queue.close_partitions(partitions, finish_queued=self._finish_queued)
        if not await self._queue.settle(partitions, self._revoke_timeout):
            cancelled = self._executors.interrupt(partitions)
            logger.warning(
                "group %r: %d handler(s) of revoked partitions were cancelled after %.1f s (revoke_timeout_ms); their "
                "records are handled by the new owner",
                self._consumer.config.group_id,
                cancelled,
                self._revoke_timeout,
            )
            if cancelled:
                await self._queue.settle(partitions, CANCEL_TIMEOUT)
        await self._committer.commit(partitions, COMMIT_TIMEOUT)
        self._give_up(partitions)

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Cancel the handlers: another member may already handle the same records."""
        self._queue.close_partitions(partitions, finish_queued=False)
        self._executors.interrupt(partitions)
        self._give_up(partitions)
        await anyio.lowlevel.checkpoint()

    def _give_up(self, partitions: frozenset[TopicPartition]) -> None:
        self._committer.forget(partitions)
        self._queue.remove(partitions)
        self._pauses.forget(partitions)


def completed_of(committed: OffsetAndMetadata | None) -> CompletedOffsets:
    """Return the finished offsets according to a commit; None: nothing was committed."""
    if committed is None:
        return CompletedOffsets()
    return CompletedOffsets(committed.offset, decode_ranges(committed.offset, committed.metadata))
