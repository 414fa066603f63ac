"""The records that are fetched and not finished: by partition, in order, within bounds.

fetched -> admit -> take -> (put_off -> put_back -> take)* -> release -> complete
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import anyio

from aiokwire.consumer import ConsumerRecord
from aiokwire.types import OffsetAndMetadata, Order, TopicPartition
from aiokwire.worker.batching import BatchAssembly
from aiokwire.worker.circuit_breaker import Circuit
from aiokwire.worker.completed_offsets import CompletedOffsets, Progress
from aiokwire.worker.context import Context, Outlet
from aiokwire.worker.handlers import Handler
from aiokwire.worker.metrics import HandlerCounts
from aiokwire.worker.observed import Attempt
from aiokwire.worker.ordering import Gate, InFlightRecord, Line, Ordered, Ordering
from aiokwire.worker.outcomes import RetryPolicy
from aiokwire.worker.retry_topics import attempts_of

RawRecord = ConsumerRecord[bytes, bytes]


class HandlerLine(Line):
    """The runnable records of a handler, with what applies to each attempt."""

    __slots__ = ("attempt", "circuit", "counts", "handler", "name", "new_context", "policy", "timeout")

    def __init__(
        self,
        handler: Handler,
        policy: RetryPolicy,
        timeout: float,
        attempt: Attempt,
        limiters: Sequence[Gate] = (),
        circuit: Circuit | None = None,
    ) -> None:
        """`timeout`: seconds, `math.inf` without a limit. `attempt` calls the handler once."""
        super().__init__(handler.concurrency, limiters if circuit is None else (*limiters, circuit))
        self.circuit: Circuit | None = circuit
        self.counts: HandlerCounts = HandlerCounts()
        self.handler: Handler = handler
        self.name: str = handler.name
        self.new_context: Callable[[Any, int, str, Outlet], Context] = handler.context_type
        self.attempt: Attempt = attempt
        self.policy: RetryPolicy = policy
        self.timeout: float = timeout


class AssignedPartition:
    """The records of one assigned partition. Assigned and changed by `WorkQueue`."""

    __slots__ = (
        "assembly",
        "bytes",
        "committed",
        "completed",
        "delay",
        "handler_line",
        "held",
        "held_since",
        "in_flight",
        "is_closing",
        "is_full",
        "running",
        "stored",
        "tp",
    )

    def __init__(
        self,
        tp: TopicPartition,
        handler_line: HandlerLine,
        completed: CompletedOffsets,
        delay: float,
        stored: OffsetAndMetadata | None,
    ) -> None:
        """`delay`: seconds for which records of a retry topic wait; 0: it is not of one."""
        self.tp: TopicPartition = tp
        self.delay: float = delay
        self.handler_line: HandlerLine = handler_line
        self.completed: CompletedOffsets = completed
        self.assembly: BatchAssembly | None = None  # of a handler of batches
        self.committed: Progress | None = None  # by this worker, last
        self.stored: OffsetAndMetadata | None = stored  # at the group's coordinator
        self.in_flight: int = 0
        self.bytes: int = 0  # of the records in flight
        self.running: int = 0  # handlers, and handled records that wait for deliveries
        self.is_full: bool = False  # it is not read until half of its share is finished
        self.is_closing: bool = False  # no further record of it starts
        self.held: Sequence[RawRecord] = ()  # read, and not due
        self.held_since: float = 0.0


class InFlightBatch(Ordered):
    """Records of one partition that are handled by one call. Filled by `BatchAssembly`."""

    __slots__ = ("attempt", "due", "is_offered", "partition", "record")

    def __init__(self, partition: AssignedPartition) -> None:
        super().__init__(partition.tp, None, partition.handler_line)
        self.partition: AssignedPartition = partition
        self.record: list[RawRecord] = []  # named as that of `InFlightRecord`: what a handler is called with
        self.attempt: int = 1
        self.due: float = 0.0  # when it waits for further records no longer
        self.is_offered: bool = False  # it may be handled

    @property
    def count(self) -> int:
        """The number of its records."""
        return len(self.record)

    @property
    def offsets(self) -> Sequence[int]:
        """The offsets of its records."""
        return [record.offset for record in self.record]

    @property
    def size(self) -> int:
        """The bytes of their keys and values."""
        return size_of(self.record)

    @property
    def place(self) -> str:
        """Its place, for logs and errors."""
        if not self.record:
            return str(self.tp)
        return f"{self.tp}, {self.count} record(s) at offsets {self.record[0].offset} to {self.record[-1].offset}"

    def single(self, record: RawRecord) -> InFlightRecord:
        """Return one of its records, as what follows its failure knows it."""
        before = attempts_of(record) if self.partition.delay else 0
        return InFlightRecord(record, self.partition, size_of([record]), self.attempt + before)

    def singles(self) -> list[InFlightRecord]:
        """Return its records, as what follows their failure knows them."""
        return [self.single(record) for record in self.record]


# What one call of a handler is for.
Work: TypeAlias = InFlightRecord | InFlightBatch


def size_of(records: Sequence[RawRecord]) -> int:
    """Return the bytes of the keys and values of records."""
    return sum(len(record.key or b"") + len(record.value or b"") for record in records)


class Wanted(NamedTuple):
    """The next read: at most `limit` records, of these partitions (None: of all)."""

    limit: int
    partitions: Collection[TopicPartition] | None


# A partition with this share of its room in use is not read; at half it is read again.
_FULL: Final = 0.75


class WorkQueue:
    """Admits fetched records, hands out those that may run, and counts what is in flight.

    The only writer of partitions and records. `on_room` is called when a partition may be read
    again.
    """

    def __init__(self, order: Order, max_records: int, max_bytes: int, on_room: Callable[[], None]) -> None:
        self.partitions: dict[TopicPartition, AssignedPartition] = {}
        self._order = order
        self._ordering = Ordering[Work](order)
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._on_room = on_room
        self._record_share = max_records
        self._byte_share = float(max_bytes)
        self._full = 0  # partitions that are not read
        self._mean_size = 1.0  # of the records that were admitted last
        self._idle: dict[anyio.Event, None] = {}  # the executors that wait; the last one is woken first
        self._is_waking = False  # an idle executor was woken, and has not run since
        self._settled = anyio.Event()  # set and replaced when a record of a closing partition ends

    # --- partitions ---------------------------------------------------------------------------------------------------

    def assign(
        self,
        tp: TopicPartition,
        line: HandlerLine,
        completed: CompletedOffsets,
        delay: float = 0.0,
        stored: OffsetAndMetadata | None = None,
    ) -> None:
        """Add a partition, or start again with one whose log was recreated. `delay`: see
        `AssignedPartition`; `stored`: what the group has committed of it."""
        self.remove([tp])
        partition = self.partitions[tp] = AssignedPartition(tp, line, completed, delay, stored)
        if line.handler.bounds is not None:
            new_batch = partial(InFlightBatch, partition)
            partition.assembly = BatchAssembly(self._order, line.handler.bounds, new_batch, self._offer)
        self._share_out()

    def close_partitions(self, partitions: Collection[TopicPartition], *, finish_queued: bool) -> None:
        """Start no further records of these; `finish_queued`: except those that were admitted."""
        for tp in partitions:
            partition = self.partitions.get(tp)
            if partition is None:
                continue
            partition.is_closing = True
            if not finish_queued:
                self._drop(partition)
                partition.in_flight = partition.running
            elif partition.assembly is not None:
                partition.assembly.stop_waiting()

    async def settle(self, partitions: Collection[TopicPartition], timeout: float) -> bool:
        """Wait until no record of these closed partitions is left; return False after `timeout`
        seconds."""
        with anyio.move_on_after(timeout):
            while any(self.partitions[tp].in_flight for tp in partitions if tp in self.partitions):
                await self._settled.wait()
            return True
        return False

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions; what still runs of them no longer counts."""
        for tp in partitions:
            partition = self.partitions.pop(tp, None)
            if partition is not None:
                partition.is_closing = True
                self._drop(partition)
                self._full -= partition.is_full
        self._share_out()

    def _drop(self, partition: AssignedPartition) -> None:
        self._ordering.drop(partition.tp)
        if partition.assembly is not None:
            partition.assembly.drop()

    def note_committed(self, tp: TopicPartition, progress: Progress, stored: OffsetAndMetadata) -> None:
        """Note what the group's coordinator has stored of a partition."""
        partition = self.partitions.get(tp)
        if partition is not None:
            partition.committed = progress
            partition.stored = stored

    def hold(self, partition: AssignedPartition, records: Sequence[RawRecord], since: float) -> None:
        """Keep records of a retry topic that are not due, in place of those that were kept."""
        partition.held, partition.held_since = records, since
        if records and not partition.is_closing:  # so that the offset of the first one is committed
            partition.completed.reach(records[0].offset)

    def _share_out(self) -> None:
        count = max(1, len(self.partitions))
        self._record_share = max(1, self._max_records // count)
        self._byte_share = max(1.0, self._max_bytes / count)

    # --- back-pressure ------------------------------------------------------------------------------------------------

    def wanted(self, most: int) -> Wanted:
        """Return what to read next, at most `most` records."""
        if not self._full:
            return Wanted(min(most, self._room(self.partitions.values())), None)
        open_ = [partition for partition in self.partitions.values() if not partition.is_full]
        return Wanted(min(most, self._room(open_)), [partition.tp for partition in open_])

    def _room(self, partitions: Collection[AssignedPartition]) -> int:
        """Return how many records fit, even if all are of the fullest one of the partitions."""
        records = max((each.in_flight for each in partitions), default=0)
        size = max((each.bytes for each in partitions), default=0)
        return max(1, min(self._record_share - records, int((self._byte_share - size) / self._mean_size)))

    @property
    def in_flight(self) -> int:
        """The number of records that are admitted and not finished."""
        return sum(partition.in_flight for partition in self.partitions.values())

    # --- records ------------------------------------------------------------------------------------------------------

    def admit(self, groups: Mapping[TopicPartition, Sequence[RawRecord]]) -> None:
        """Add fetched records, which are of assigned partitions. Wakes an idle executor."""
        for tp, records in groups.items():
            partition = self.partitions.get(tp)
            if partition is None or partition.is_closing:
                continue  # given up while its offsets were being committed
            self._admit(partition, records)
        self.wake()

    def _admit(self, partition: AssignedPartition, records: Sequence[RawRecord]) -> None:
        count, size = (self._add if partition.assembly is None else self._assemble)(partition, records)
        if count:
            self._mean_size = max(1.0, size / count)
        partition.in_flight += count
        partition.bytes += size
        if not partition.is_full and (
            partition.in_flight >= self._record_share * _FULL or partition.bytes >= self._byte_share * _FULL
        ):
            partition.is_full = True
            self._full += 1
            if partition.assembly is not None:  # no further record comes
                partition.assembly.flush()

    def _add(self, partition: AssignedPartition, records: Sequence[RawRecord]) -> tuple[int, int]:
        """Return how many records were admitted, and their bytes."""
        unfinished = partition.completed.start_many(records)
        attempts = attempts_of if partition.delay else None
        return len(unfinished), self._ordering.add_records(unfinished, partition, attempts)

    def _assemble(self, partition: AssignedPartition, records: Sequence[RawRecord]) -> tuple[int, int]:
        assert partition.assembly is not None
        unfinished = partition.completed.start_many(records)
        size = size_of(unfinished)
        partition.assembly.add(unfinished)
        return len(unfinished), size

    def _offer(self, batch: InFlightBatch) -> None:
        """Let a batch start."""
        batch.is_offered = True
        self._ordering.offer(batch)
        self.wake()

    def take(self) -> Work | None:
        """Return a record to handle, or None; wakes another idle executor if more can run."""
        item = self._ordering.take()
        if item is not None:
            partition = item.partition
            if partition.assembly is not None:
                partition.assembly.close(item)
                partition.handler_line.counts.started(item.count)
            partition.running += item.count
            if self._idle and not self._is_waking:
                self.wake()
        return item

    async def wait(self) -> None:
        """Wait until `take` may return a record."""
        woken = anyio.Event()
        self._idle[woken] = None
        try:
            await woken.wait()
        except BaseException:  # cancelled: if it was woken, another executor is woken instead
            self._idle.pop(woken, None)
            self._is_waking = self._is_waking and not woken.is_set()
            self.wake()
            raise
        self._is_waking = False

    def wake(self) -> None:
        """Have an idle executor take a record; it wakes the next one, if there are more."""
        if self._idle and not self._is_waking and self._ordering.can_take:
            self._is_waking = True
            self._idle.popitem()[0].set()

    def finish(self, item: Work) -> None:
        """Let the next record of the chain run, and count this one as finished."""
        if isinstance(item, InFlightBatch):
            self.release(item)
            self.complete(item)
            return
        self._ordering.release(item)
        partition = item.partition
        partition.completed.complete(item.record.offset)
        partition.running -= 1
        partition.in_flight -= 1
        partition.bytes -= item.size
        if partition.is_closing:
            self._note_end()
        if partition.is_full:
            self._note_room(partition)

    def release(self, item: Work) -> None:
        """Let the next record of the chain run; `complete` or `abandon` must follow."""
        self._ordering.release(item)
        if isinstance(item, InFlightBatch):
            _assembly_of(item).release(item.record)

    def part_off(self, batch: InFlightBatch, records: Sequence[RawRecord]) -> InFlightBatch:
        """Take records out of a batch that has run; return them. What waits for them may run.

        `complete` or `abandon` must follow, without `release`, unless each of them has ended.
        """
        offsets = {record.offset for record in records}
        part = InFlightBatch(batch.partition)
        part.record = [record for record in batch.record if record.offset in offsets]
        batch.record = [record for record in batch.record if record.offset not in offsets]
        _assembly_of(batch).release(part.record, batch.record)
        return part

    def complete(self, item: Work) -> None:
        """Count a released record as finished."""
        partition = item.partition
        if isinstance(item, InFlightBatch):
            partition.completed.complete_many(item.record)
        else:
            partition.completed.complete(item.record.offset)
        self._end(partition, item)
        self._note_room(partition)

    def _note_room(self, partition: AssignedPartition) -> None:
        if partition.is_full and (
            partition.in_flight <= self._record_share // 2 and partition.bytes <= self._byte_share / 2
        ):
            partition.is_full = False
            if self.partitions.get(partition.tp) is partition:
                self._full -= 1
                self._on_room()

    def abandon(self, item: Work) -> None:
        """Count a released record, whose partition is closing, as unfinished."""
        self._end(item.partition, item)

    def _end(self, partition: AssignedPartition, item: Work) -> None:
        partition.running -= item.count
        partition.in_flight -= item.count
        partition.bytes -= item.size
        if partition.is_closing:
            self._note_end()

    def _note_end(self) -> None:
        self._settled.set()
        self._settled = anyio.Event()

    def put_off(self, item: Work) -> None:
        """Let a record wait for its next attempt; its chain waits with it."""
        self._ordering.put_off(item)
        item.attempt += 1
        self._interrupt(item)

    def _interrupt(self, item: Work) -> None:
        """Count a record that no longer runs and is not finished."""
        partition = item.partition
        partition.running -= item.count
        if partition.is_closing:  # it is delivered again
            partition.in_flight -= item.count
            self._note_end()

    def postpone(self, item: Work) -> None:
        """Let a record run again, behind others of its handler; the attempt does not count."""
        if item.partition.is_closing:
            self._ordering.put_off(item)
        else:
            self._ordering.postpone(item)
        self._interrupt(item)
        self.wake()

    def put_back(self, item: Work) -> None:
        """Make a record that was put off runnable, unless its partition is being given up."""
        if not item.partition.is_closing:
            self._ordering.put_back(item)
            self.wake()


def _assembly_of(batch: InFlightBatch) -> BatchAssembly:
    assembly = batch.partition.assembly
    assert assembly is not None
    return assembly
