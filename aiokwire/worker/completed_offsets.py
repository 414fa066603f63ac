"""The finished records of one partition: the offset to commit, and the ranges beyond it.

Records are delivered in the order of their offsets and finish in any order. The committed offset
never passes an unfinished record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aiokwire.worker.signatures import RawRecord


class OffsetRange(NamedTuple):
    """Offsets from `start` up to, but without, `end`."""

    start: int
    end: int


class Progress(NamedTuple):
    """The contents of a commit: finished are records below `offset` and in the `ranges` beyond."""

    offset: int
    leader_epoch: int
    ranges: tuple[OffsetRange, ...]


class CompletedOffsets:
    """The offsets of one partition that are in flight or completed.

    Offsets that a log does not have (compaction, transaction markers) count as completed.
    """

    __slots__ = ("_beyond", "_committed", "_epochs", "_next", "_skips", "_unfinished")

    def __init__(self, committed: int = -1, finished: Iterable[OffsetRange] = ()) -> None:
        """`committed`: the committed offset, -1 if none; `finished`: the ranges beyond it that its
        metadata names, in order."""
        self._committed = committed
        # In order. What is finished takes no memory, however long one record holds back the commit.
        self._unfinished: dict[int, None] = {}
        self._next = -1  # the offset after the last one that was started
        self._epochs: deque[tuple[int, int]] = deque()  # (first offset, leader epoch) of each change
        self._skips = deque(finished)  # those that were not reached yet
        self._beyond = self._skips[-1].end if self._skips else -1

    def start(self, offset: int, leader_epoch: int = -1) -> bool:
        """Note the next record; return False if it was finished before, so that it is left out."""
        if offset < self._committed:  # the log was recreated: the ranges are of another one
            self._skips.clear()
        if not self._epochs or self._epochs[-1][1] != leader_epoch:
            self._epochs.append((offset, leader_epoch))
        self._next = offset + 1
        if offset < self._beyond and self._is_finished(offset):
            return False
        self._unfinished[offset] = None
        return True

    def start_many(self, records: Sequence[RawRecord]) -> Sequence[RawRecord]:
        """Note the next records; return those that were not finished before."""
        if not records:  # of a retry topic, and none is due
            return records
        first, last = records[0], records[-1]
        is_known = bool(self._epochs) and self._epochs[-1][1] == first.leader_epoch == last.leader_epoch
        if not is_known or first.offset < max(self._beyond, self._committed):
            return [record for record in records if self.start(record.offset, record.leader_epoch)]
        self._unfinished.update(dict.fromkeys(record.offset for record in records))
        self._next = last.offset + 1
        return records

    def complete_many(self, records: Iterable[RawRecord]) -> None:
        """Note that started records are finished."""
        unfinished = self._unfinished
        for record in records:
            del unfinished[record.offset]

    def _is_finished(self, offset: int) -> bool:
        while self._skips and self._skips[0].end <= offset:
            self._skips.popleft()
        return bool(self._skips) and self._skips[0].start <= offset

    def complete(self, offset: int) -> None:
        """Note that the record at a started offset is finished."""
        del self._unfinished[offset]

    def reach(self, position: int) -> None:
        """Note that no record exists between the last started one and `position`."""
        self._next = max(self._next, position)

    @property
    def next_offset(self) -> int:
        """The lowest offset that may be started; -1 before the first record."""
        return self._next

    @property
    def oldest(self) -> int | None:
        """The lowest started offset that is not finished; None if all are finished."""
        return next(iter(self._unfinished), None)

    @property
    def in_flight(self) -> int:
        """The number of started records that are not finished."""
        return len(self._unfinished)

    def committable(self) -> Progress | None:
        """Return what a commit may store now; None before the first record."""
        if self._next < 0:
            return None
        offset = next(iter(self._unfinished), self._next)
        return Progress(offset, self._epoch_before(offset), tuple(self._finished_beyond(offset)))

    def _epoch_before(self, offset: int) -> int:
        """Return the leader epoch of the last record before an offset; -1 if unknown."""
        epochs = self._epochs
        while len(epochs) > 1 and epochs[1][0] < offset:
            epochs.popleft()
        return epochs[0][1] if epochs and epochs[0][0] < offset else -1

    def _finished_beyond(self, offset: int) -> Iterable[OffsetRange]:
        """Yield the ranges between unfinished offsets, then those of the earlier owner."""
        after = offset
        for unfinished in self._unfinished:
            if unfinished > after:
                yield OffsetRange(after, unfinished)
            after = unfinished + 1
        rest = [OffsetRange(max(each.start, self._next), each.end) for each in self._skips if each.end > self._next]
        if after < self._next:
            end = rest.pop(0).end if rest and rest[0].start == self._next else self._next
            yield OffsetRange(after, end)
        yield from rest
