"""The offsets that a batch reads, and their split into tasks. Pure functions.

Used by the readers, on the driver.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from aiokwire.spark.offsets import Offsets
from aiokwire.types import TopicPartition

# Small ranges share tasks when there are more ranges than this.
MANY_TASKS: Final = 16
# A range of fewer offsets is small.
SMALL: Final = 65_536


class Range(NamedTuple):
    """Offsets of one partition, from `start` up to `end` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """The count of offsets; compaction and transactions leave fewer records."""
        return self.end - self.start


def ranges_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> list[Range]:
    """Return the ranges to read, without empty ones."""
    return [Range(*tp, start[tp], end[tp]) for tp in sorted(end) if start.get(tp, end[tp]) < end[tp]]


@dataclasses.dataclass
class Bounds:
    """The bounds set by a query's filters; None: unbounded."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first: int = 0
    end: int | None = None
    since: int | None = None
    """Milliseconds since the epoch at which reading may begin. Spark still has to check each
    record: timestamps in a partition are not ordered."""

    def cut(self, ranges: Sequence[Range]) -> list[Range]:
        """Return the ranges within the bounds."""
        found = []
        for each in ranges:
            if self.topics is not None and each.topic not in self.topics:
                continue
            if self.partitions is not None and each.partition not in self.partitions:
                continue
            start = max(each.start, self.first)
            end = each.end if self.end is None else min(each.end, self.end)
            if start < end:
                found.append(each._replace(start=start, end=end))
        return found

    def end_at(self, end: int) -> None:
        self.end = end if self.end is None else min(self.end, end)


def split(
    ranges: Sequence[Range],
    *,
    min_tasks: int | None = None,
    max_records: int | None = None,
    max_bytes: int | None = None,
    bytes_per_offset: Mapping[TopicPartition, float] | None = None,
) -> list[tuple[Range, ...]]:
    """Split ranges into tasks: large ones are cut, small ones share a task.

    `max_records` and `max_bytes` bound every piece; `min_tasks` is reached if there are enough
    offsets.
    """
    sizes = bytes_per_offset or {}
    pieces: list[Range] = []
    for whole in ranges:
        limit = whole.size
        if max_records is not None:
            limit = min(limit, max_records)
        if max_bytes is not None and sizes.get(whole.tp, 0) > 0:
            limit = min(limit, max(1, int(max_bytes / sizes[whole.tp])))
        pieces += cut(whole, math.ceil(whole.size / limit))
    if min_tasks is not None and len(pieces) < min_tasks:
        return [(piece,) for piece in _cut_more(pieces, min_tasks)]
    return _together(pieces, min_tasks or MANY_TASKS)


def cut(whole: Range, count: int) -> list[Range]:
    """Cut a range into `count` pieces of nearly equal size, fewer when there are fewer offsets."""
    count = max(1, min(count, whole.size))
    edges = [whole.start + whole.size * index // count for index in range(count + 1)]
    return [whole._replace(start=start, end=end) for start, end in itertools.pairwise(edges)]


def _cut_more(pieces: Sequence[Range], wanted: int) -> list[Range]:
    """Cut pieces that are larger than their share, in proportion to their size."""
    total = sum(piece.size for piece in pieces)
    if not total:
        return list(pieces)
    # Pieces below their share stay whole and are left out of the other shares, as in spark-sql-kafka.
    small = [piece for piece in pieces if piece.size * wanted < total]
    large_total = total - sum(piece.size for piece in small)
    left = max(1, wanted - len(small))
    found: list[Range] = []
    for piece in pieces:
        found += cut(piece, 1 if piece in small else max(1, round(piece.size * left / large_total)))
    while len(found) < wanted:
        largest = max(range(len(found)), key=lambda index: found[index].size)
        if found[largest].size < 2:
            break
        found[largest : largest + 1] = cut(found[largest], 2)
    return found


def _together(pieces: Sequence[Range], most: int) -> list[tuple[Range, ...]]:
    """Let small pieces share tasks if there are more pieces than `most`."""
    if len(pieces) <= most:
        return [(piece,) for piece in pieces]
    large = [(piece,) for piece in pieces if piece.size >= SMALL]
    small = sorted((piece for piece in pieces if piece.size < SMALL), key=lambda piece: -piece.size)
    total = sum(piece.size for piece in small)
    bins = min(len(small), max(most - len(large), math.ceil(total / SMALL), 1))
    shares: list[list[Range]] = [[] for _ in range(bins)]
    filled = [0] * bins
    for piece in small:
        least = filled.index(min(filled))
        shares[least].append(piece)
        filled[least] += piece.size
    return large + [tuple(sorted(share)) for share in shares if share]


# --- limits of a microbatch -----------------------------------------------------------------------------------------


def admit(start: Mapping[TopicPartition, int], available: Mapping[TopicPartition, int], most: int) -> Offsets:
    """Return the end of a microbatch of `most` offsets: shares by lag, at least 1 for any lag."""
    return _admit(start, available, most, dict.fromkeys(available, 1.0))


def admit_bytes(
    start: Mapping[TopicPartition, int],
    available: Mapping[TopicPartition, int],
    most: int,
    bytes_per_offset: Mapping[TopicPartition, float],
) -> Offsets:
    """Return the end of a microbatch of `most` bytes, by the bytes per offset of each partition."""
    return _admit(start, available, most, bytes_per_offset)


def _admit(
    start: Mapping[TopicPartition, int],
    available: Mapping[TopicPartition, int],
    most: float,
    weights: Mapping[TopicPartition, float],
) -> Offsets:
    lags = {tp: max(0, end - start.get(tp, end)) for tp, end in available.items()}
    total = sum(lag * weights.get(tp, 1.0) for tp, lag in lags.items())
    if total <= most:
        return dict(available)
    found = {}
    for tp, lag in lags.items():
        share = lag * most / total
        found[tp] = start.get(tp, available[tp]) + min(lag, math.ceil(share) if share < 1 else int(share))
    return found


def must_wait(*, offsets: int, least: int | None, waited: float, max_delay: float) -> bool:
    """Whether a microbatch waits: fewer than `least` offsets, and the delay has not passed."""
    return least is not None and offsets < least and waited < max_delay


def lag(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    """Return the count of offsets from `start` to `end`."""
    return sum(max(0, end[tp] - start.get(tp, end[tp])) for tp in end)


# --- lost data ------------------------------------------------------------------------------------------------------


class Loss(NamedTuple):
    """Offsets that should be read and are not in the log."""

    topic: str
    partition: int
    start: int
    end: int
    reason: str

    def __str__(self) -> str:
        what = f"offsets {self.start} to {self.end - 1}" if self.end > self.start else f"offset {self.start}"
        return f"{self.topic}[{self.partition}]: {what} cannot be read: {self.reason}"


def without_lost(
    start: Mapping[TopicPartition, int], earliest: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]
) -> tuple[Offsets, list[Loss]]:
    """Return where to begin instead, and what was lost by retention or by a recreated topic."""
    found: Offsets = {}
    losses: list[Loss] = []
    for tp, offset in start.items():
        if tp not in latest:
            losses.append(Loss(*tp, offset, offset, "the partition was deleted"))
        elif offset < earliest[tp]:
            losses.append(Loss(*tp, offset, earliest[tp], f"the log begins at {earliest[tp]}"))
            found[tp] = earliest[tp]
        elif offset > latest[tp]:
            losses.append(Loss(*tp, offset, offset, f"the log ends at {latest[tp]}: it was recreated or truncated"))
            found[tp] = earliest[tp]
        else:
            found[tp] = offset
    return found, losses


def until_end(end: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> tuple[Offsets, list[Loss]]:
    """Return where to end instead, and the offsets that are missing."""
    found = {tp: min(offset, latest[tp]) for tp, offset in end.items()}
    lost = [
        Loss(*tp, latest[tp], offset, f"the log ends at {latest[tp]}")
        for tp, offset in end.items()
        if offset > latest[tp]
    ]
    return found, lost
