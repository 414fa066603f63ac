"""Records of retry topics that were read before they are due; the pauses of their partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from aiokwire.clock import loop_time
from aiokwire.consumer import Consumer
from aiokwire.loop_timer import LoopTimer
from aiokwire.types import TopicPartition
from aiokwire.worker.retry_topics import RawRecord, wait_of
from aiokwire.worker.work_queue import AssignedPartition, WorkQueue

_NOT_DUE = "not due"


class PartitionPauses:
    """The partitions that are not read, by reason: the only caller of the consumer's `pause`."""

    def __init__(self, consumer: Consumer[bytes, bytes]) -> None:
        self._consumer = consumer
        self._reasons: dict[TopicPartition, set[object]] = {}

    def pause(self, partitions: Collection[TopicPartition], reason: object) -> None:
        """Stop reading these partitions until no reason for a pause is left."""
        for tp in self._consumer.assignment & set(partitions):
            self._reasons.setdefault(tp, set()).add(reason)
            self._consumer.pause(tp)

    def resume(self, partitions: Collection[TopicPartition], reason: object) -> None:
        """End the pauses for this reason."""
        for tp in partitions:
            reasons = self._reasons.get(tp)
            if reasons is None:
                continue
            reasons.discard(reason)
            if not reasons:
                del self._reasons[tp]
                if tp in self._consumer.assignment:
                    self._consumer.resume(tp)

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Leave out partitions that are no longer assigned."""
        for tp in partitions:
            self._reasons.pop(tp, None)


class DelayedRecords:
    """Admits the records of retry topics when they are due.

    A partition is paused at its first record that is not due; records read beyond it are kept,
    at most those of one read. A record waits no longer than its topic's delay after it was
    read, whatever the wall clock does.
    """

    def __init__(self, queue: WorkQueue, pauses: PartitionPauses) -> None:
        self._queue = queue
        self._pauses = pauses
        self._timer = LoopTimer(asyncio.get_running_loop(), self._on_time)

    def due(self, groups: Mapping[TopicPartition, Sequence[RawRecord]]) -> dict[TopicPartition, Sequence[RawRecord]]:
        """Return the records that may be handled now, and keep the others."""
        now = loop_time()
        found: dict[TopicPartition, Sequence[RawRecord]] = {}
        for tp, records in groups.items():
            partition = self._queue.partitions.get(tp)
            if partition is not None and partition.delay:
                self._queue.hold(partition, records, now)
                found[tp] = self._release(partition)
                if partition.held:
                    self._pauses.pause([tp], _NOT_DUE)
            else:
                found[tp] = records
        return found

    def close(self) -> None:
        """Admit no further records."""
        self._timer.cancel()

    def _on_time(self) -> None:
        for partition in list(self._queue.partitions.values()):
            if partition.held and not partition.is_closing:
                self._queue.admit({partition.tp: self._release(partition)})
                if not partition.held:
                    self._pauses.resume([partition.tp], _NOT_DUE)

    def _release(self, partition: AssignedPartition) -> Sequence[RawRecord]:
        """Return the held records that are due, and wait for the next one."""
        records, now = partition.held, loop_time()
        latest = partition.held_since + partition.delay - now
        for index, record in enumerate(records):
            wait = min(wait_of(record), latest)
            if wait > 0:
                self._timer.set(now + wait)
                self._queue.hold(partition, records[index:], partition.held_since)
                return records[:index]
        self._queue.hold(partition, (), 0.0)
        return records
