"""The state of a partition's idempotent and transactional producers.

A retried batch is recognized among the last five of its producer, a gap in the sequence is
rejected, an old epoch is fenced; the first offset of each open transaction bounds the last stable
offset.
Saved as `<offset>.snapshot`, which, as in Kafka, has only the last batch of each producer.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from aiokwire.broker.log.batches import Batch, Marker
from aiokwire.broker.log.index import AbortedTransaction
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, CorruptRecord, error_for
from aiokwire.records import crc32c

DUPLICATE_WINDOW = 5  # batches that a producer may have in flight
NO_SEQUENCE = -1
NO_EPOCH = -1
MAX_SEQUENCE = 2**31 - 1

_SNAPSHOT_HEAD = struct.Struct(">hI")
_SNAPSHOT_COUNT = struct.Struct(">i")
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_SNAPSHOT_VERSION = 1


class ProducedBatch(NamedTuple):
    """Sequences and offsets of a batch in the log, by which its duplicates are recognized."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class ProducerState:
    """A partition's state of one producer id: epoch, last batches, open transaction."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_timestamp", "producer_id", "transaction_start")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id: int = producer_id
        self.epoch: int = epoch
        self.batches: deque[ProducedBatch] = deque(maxlen=DUPLICATE_WINDOW)  # of this epoch, oldest first
        self.coordinator_epoch: int = -1
        self.transaction_start: int = -1  # the first offset of the open transaction
        self.last_timestamp: int = -1

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def note(self, batch: Batch, base_offset: int, last_offset: int) -> None:
        """Account for an appended data batch."""
        if batch.producer_epoch != self.epoch:
            self._enter_epoch(batch.producer_epoch)
        self.last_timestamp = batch.max_timestamp
        if batch.base_sequence >= 0:
            last = advance(batch.base_sequence, last_offset - base_offset)
            self.batches.append(ProducedBatch(batch.base_sequence, last, base_offset, last_offset, batch.max_timestamp))

    def open_transaction(self, offset: int) -> None:
        self.transaction_start = offset

    def complete(self, batch: Batch, coordinator_epoch: int) -> int:
        """Account for a marker; return the start of the transaction, -1 if there was none."""
        if batch.producer_epoch != self.epoch:
            self._enter_epoch(batch.producer_epoch)
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = batch.max_timestamp
        start, self.transaction_start = self.transaction_start, -1
        return start

    def _enter_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches.clear()

    def recall(self, batches: Iterable[ProducedBatch]) -> None:
        """Replace the last batches, by which duplicates are recognized."""
        self.batches = deque(batches, maxlen=DUPLICATE_WINDOW)

    def restore(self, last_timestamp: int, coordinator_epoch: int, transaction_start: int) -> None:
        """Set the fields of a snapshot."""
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.transaction_start = transaction_start


class ProducerStates:
    """Every producer of one partition."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self.states: dict[int, ProducerState] = {}
        self._open: dict[int, int] = {}  # producer id to the first offset of its transaction, oldest first

    def __len__(self) -> int:
        return len(self.states)

    def clear(self) -> None:
        """Remove every producer."""
        self.states.clear()
        self._open.clear()

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the oldest open transaction."""
        return next(iter(self._open.values()), None)

    def check(self, batch: Batch, *, from_client: bool = True) -> ProducedBatch | None:
        """Check a batch before it is appended; return the earlier one if it is a duplicate.

        Batches of coordinators have no sequence: only their epoch is checked.

        Raises: BrokerError: INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER or
        INVALID_TXN_STATE.
        """
        state = self.states.get(batch.producer_id)
        if state is None:
            return None
        epoch, sequence = batch.producer_epoch, batch.base_sequence
        if batch.is_control or not from_client:
            if epoch < state.epoch:
                raise self._refusal(ErrorCode.INVALID_PRODUCER_EPOCH, batch, f"its epoch is {state.epoch}")
            return None
        if epoch == state.epoch:
            last = advance(sequence, batch.last_offset - batch.base_offset)
            for earlier in state.batches:
                if earlier.first_sequence == sequence and earlier.last_sequence == last:
                    return earlier
            if sequence != advance(state.last_sequence, 1):
                raise self._refusal(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, batch, f"its last sequence is {state.last_sequence}"
                )
        elif epoch < state.epoch:
            raise self._refusal(ErrorCode.INVALID_PRODUCER_EPOCH, batch, f"its epoch is {state.epoch}")
        elif sequence != 0:
            raise self._refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, batch, "a new epoch starts with sequence 0")
        if state.transaction_start >= 0 and not batch.is_transactional:
            raise self._refusal(ErrorCode.INVALID_TXN_STATE, batch, "it has an open transaction")
        return None

    def _refusal(self, code: ErrorCode, batch: Batch, why: str) -> BrokerError:
        asked = f"sequence {batch.base_sequence} of epoch {batch.producer_epoch}"
        return error_for(
            code,
            f"append to {self._topic}[{self._partition}] by producer {batch.producer_id}, {asked} ({why})",
            topic=self._topic,
            partition=self._partition,
            request="Produce",
        )

    def note(self, batch: Batch, base_offset: int, last_offset: int) -> None:
        """Account for a data batch that was appended at these offsets."""
        state = self._state_of(batch)
        state.note(batch, base_offset, last_offset)
        if batch.is_transactional and state.transaction_start < 0:
            state.open_transaction(base_offset)
            self._open[batch.producer_id] = base_offset

    def recall(self, batches: Iterable[Batch]) -> None:
        """Add batches of the log, in order, that a snapshot does not have."""
        found: dict[int, list[ProducedBatch]] = {}
        for batch in batches:
            state = self.states.get(batch.producer_id)
            if state is None or batch.producer_epoch != state.epoch or batch.base_sequence < 0:
                continue
            last = advance(batch.base_sequence, batch.last_offset - batch.base_offset)
            found.setdefault(batch.producer_id, []).append(
                ProducedBatch(batch.base_sequence, last, batch.base_offset, batch.last_offset, batch.max_timestamp)
            )
        for producer_id, recalled in found.items():
            state = self.states[producer_id]
            if recalled[-1].last_offset == state.last_offset:  # otherwise these are not the latest
                state.recall(recalled)

    def complete(self, batch: Batch, marker: Marker, offset: int) -> AbortedTransaction | None:
        """Account for an appended marker; return the transaction that it aborted."""
        start = self._state_of(batch).complete(batch, marker.coordinator_epoch)
        self._open.pop(batch.producer_id, None)
        if start < 0 or marker.is_commit:
            return None
        stable = self.first_unstable_offset
        return AbortedTransaction(batch.producer_id, start, offset, offset + 1 if stable is None else stable)

    def _state_of(self, batch: Batch) -> ProducerState:
        state = self.states.get(batch.producer_id)
        if state is None:
            state = self.states[batch.producer_id] = ProducerState(batch.producer_id, batch.producer_epoch)
        return state

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Remove idle producers without an open transaction; return their number."""
        gone = [
            state.producer_id
            for state in self.states.values()
            if state.transaction_start < 0 and now_ms - state.last_timestamp >= expiration_ms
        ]
        for producer_id in gone:
            del self.states[producer_id]
        return len(gone)

    # --- snapshots ----------------------------------------------------------------------------------------------------

    def pack(self) -> bytes:
        """Return the content of a snapshot file."""
        entries = b"".join(
            _SNAPSHOT_ENTRY.pack(
                state.producer_id,
                state.epoch,
                state.last_sequence,
                state.last_offset,
                state.batches[-1].last_offset - state.batches[-1].base_offset if state.batches else 0,
                state.last_timestamp,
                state.coordinator_epoch,
                state.transaction_start,
            )
            for state in self.states.values()
        )
        body = _SNAPSHOT_COUNT.pack(len(self.states)) + entries
        return _SNAPSHOT_HEAD.pack(_SNAPSHOT_VERSION, crc32c(body)) + body

    def unpack(self, content: bytes) -> None:
        """Replace all producers by those of a snapshot.

        Raises: CorruptRecord: nothing was replaced.
        """
        head = _SNAPSHOT_HEAD.size + _SNAPSHOT_COUNT.size
        if len(content) < head:
            raise CorruptRecord("a producer snapshot is truncated")
        version, crc = _SNAPSHOT_HEAD.unpack_from(content)
        (count,) = _SNAPSHOT_COUNT.unpack_from(content, _SNAPSHOT_HEAD.size)
        if crc32c(memoryview(content)[_SNAPSHOT_HEAD.size :]) != crc or version != _SNAPSHOT_VERSION:
            raise CorruptRecord("a producer snapshot has the wrong checksum or version")
        if len(content) != head + count * _SNAPSHOT_ENTRY.size:
            raise CorruptRecord("a producer snapshot has the wrong size")
        self.states.clear()
        for fields in _SNAPSHOT_ENTRY.iter_unpack(content[head:]):
            producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, start = fields
            state = self.states[producer_id] = ProducerState(producer_id, epoch)
            state.restore(timestamp, coordinator_epoch, start)
            if sequence != NO_SEQUENCE:
                first = retreat(sequence, delta)
                state.batches.append(ProducedBatch(first, sequence, offset - delta, offset, timestamp))
        opened = ((state.transaction_start, state.producer_id) for state in self.states.values())
        self._open = {producer_id: start for start, producer_id in sorted(opened) if start >= 0}


def advance(sequence: int, by: int) -> int:
    """Return the sequence number `by` later; 0 follows the greatest."""
    later = sequence + by
    return later - MAX_SEQUENCE - 1 if later > MAX_SEQUENCE else later


def retreat(sequence: int, by: int) -> int:
    """Return the sequence number `by` earlier."""
    earlier = sequence - by
    return earlier + MAX_SEQUENCE + 1 if earlier < 0 else earlier
