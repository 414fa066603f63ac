"""Mergeable summaries of many records, one for each part of a log. No I/O.

The result does not depend on how the log is split, except for `TopKeys` above its bound, whose
counts have a known error.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

K = TypeVar("K")

# The stretches of offsets that are named; all are counted.
STRETCHES_SHOWN: Final = 20
# The keys that are counted exactly; with more, a count may be too low by at most the records divided by this.
KEYS_COUNTED: Final = 5000
# The producers of a partition that are distinguished.
PRODUCERS_SHOWN: Final = 200
# The most time buckets of a partition.
TIME_BUCKETS: Final = 240
# A longer key is represented by its beginning and a digest.
LONG_KEY: Final = 128


@dataclass
class Stretches:
    """Stretches of offsets in ascending order; adjacent ones are joined."""

    offsets: int = 0
    count: int = 0
    first: int = -1
    """The start of the first stretch."""
    end: int = -1
    """The end (exclusive) of the last stretch."""
    shown: list[tuple[int, int]] = field(default_factory=list)
    """The first ones: start and end (exclusive)."""

    def add(self, begin: int, end: int) -> None:
        """Append a stretch."""
        if begin >= end:
            return
        touches = begin == self.end
        if not self.count:
            self.first = begin
        if touches and len(self.shown) == self.count:
            self.shown[-1] = (self.shown[-1][0], end)
        elif not touches and len(self.shown) < STRETCHES_SHOWN:
            self.shown.append((begin, end))
        self.offsets += end - begin
        self.count += not touches
        self.end = end

    def merge(self, later: Stretches) -> Stretches:
        """Merge with stretches at later offsets."""
        if not self.count or not later.count:
            chosen = later if not self.count else self
            return Stretches(chosen.offsets, chosen.count, chosen.first, chosen.end, list(chosen.shown))
        found = Stretches(self.offsets, self.count, self.first, self.end, list(self.shown))
        for begin, end in later.shown:
            found.add(begin, end)
        return Stretches(
            self.offsets + later.offsets,
            self.count + later.count - (self.end == later.first),
            self.first,
            later.end,
            found.shown,
        )


@dataclass
class Sizes:
    """Non-negative numbers: count, sum, range, and a histogram by powers of two."""

    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0
    by_bits: dict[int, int] = field(default_factory=dict)
    """Counts by binary digits: 0 for 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7."""

    @classmethod
    def of(cls, numbers: Iterable[int]) -> Self:
        found = cls()
        for number in numbers:
            found.add(number)
        return found

    def add(self, number: int) -> None:
        self.least = number if not self.count else min(self.least, number)
        self.most = max(self.most, number)
        self.count += 1
        self.total += number
        bits = number.bit_length()
        self.by_bits[bits] = self.by_bits.get(bits, 0) + 1

    def merge(self, other: Sizes) -> Sizes:
        if not self.count or not other.count:
            some = self if self.count else other
            return Sizes(some.count, some.total, some.least, some.most, dict(some.by_bits))
        return Sizes(
            self.count + other.count,
            self.total + other.total,
            min(self.least, other.least),
            max(self.most, other.most),
            sums(self.by_bits, other.by_bits),
        )

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


def sums(one: Mapping[K, int], other: Mapping[K, int]) -> dict[K, int]:
    """Add counts by key."""
    found = dict(one)
    for name, count in other.items():
        found[name] = found.get(name, 0) + count
    return found


@dataclass
class TopKeys:
    """Counts of keys: exact for up to `most` keys, else of the frequent ones (Misra and Gries).

    With more keys, each count may be too low by up to `error`, which is at most the records divided
    by `most`; a missing key occurs at most `error` times.
    """

    most: int = KEYS_COUNTED
    records: int = 0
    error: int = 0
    counts: dict[bytes, int] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        return not self.error

    def merge(self, other: TopKeys) -> TopKeys:
        counts = sums(self.counts, other.counts)
        records, error = self.records + other.records, self.error + other.error
        if len(counts) > self.most:
            # Subtract the largest count that does not fit from all: the step of Misra and Gries for merging.
            lost = sorted(counts.values(), reverse=True)[self.most]
            counts = {key: count - lost for key, count in counts.items() if count > lost}
            error += lost
        return TopKeys(self.most, records, error, counts)

    def add(self, counts: Mapping[bytes, int]) -> TopKeys:
        """Add exact counts."""
        return self.merge(TopKeys(self.most, sum(counts.values()), 0, dict(counts)))

    def top(self, count: int) -> list[tuple[bytes, int]]:
        """Return the most frequent keys; keys of equal counts in order."""
        return heapq.nsmallest(count, self.counts.items(), key=lambda item: (-item[1], item[0]))


def short_key(key: bytes) -> bytes:
    """Shorten a long key, to bound the memory."""
    if len(key) <= LONG_KEY:
        return key
    return key[: LONG_KEY // 2] + b"... " + hashlib.sha256(key).hexdigest()[:32].encode()


@dataclass
class TimeBuckets:
    """Counts of records by time, in the narrowest buckets that their number allows."""

    width: int = 1
    """Milliseconds; a power of two."""
    counts: dict[int, int] = field(default_factory=dict)
    """By time divided by the width."""

    @classmethod
    def of(cls, counts: Mapping[int, int], width: int = 1) -> Self:
        found = cls(width, dict(counts))
        while len(found.counts) > TIME_BUCKETS:
            found = cls(found.width * 2, _halved(found.counts))
        return found

    def merge(self, other: TimeBuckets) -> TimeBuckets:
        width = max(self.width, other.width)
        return TimeBuckets.of(sums(self._wide(width), other._wide(width)), width)

    def _wide(self, width: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for bucket, count in self.counts.items():
            wide = bucket * self.width // width
            found[wide] = found.get(wide, 0) + count
        return found

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the start (milliseconds) and the count of each bucket, in order of time."""
        return ((bucket * self.width, count) for bucket, count in sorted(self.counts.items()))


def _halved(counts: Mapping[int, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for bucket, count in counts.items():
        found[bucket // 2] = found.get(bucket // 2, 0) + count
    return found


@dataclass
class Times:
    """A summary of timestamps in offset order, without records that have none."""

    records: int = 0
    without: int = 0
    first: int = -1
    last: int = -1
    least: int = -1
    most: int = -1
    steps_back: int = 0
    """Records that are earlier than their predecessor."""
    latest_by: int = 0
    """The most (milliseconds) by which a record is earlier than any record before it."""
    buckets: TimeBuckets = field(default_factory=TimeBuckets)

    def merge(self, later: Times) -> Times:
        """Merge with times at later offsets."""
        buckets = self.buckets.merge(later.buckets)
        without = self.without + later.without
        if not self.records or not later.records:
            some = self if self.records else later
            return Times(
                some.records, without, some.first, some.last, some.least, some.most, some.steps_back, some.latest_by,
                buckets,
            )  # fmt: skip
        return Times(
            self.records + later.records,
            without,
            self.first,
            later.last,
            min(self.least, later.least),
            max(self.most, later.most),
            self.steps_back + later.steps_back + (later.first < self.last),
            max(self.latest_by, later.latest_by, self.most - later.least),
            buckets,
        )


@dataclass
class Producer:
    """The batches of an idempotent producer in a partition."""

    first_offset: int
    last_offset: int
    low_epoch: int
    high_epoch: int
    batches: int = 1
    records: int = 0
    transactional: bool = False

    def merge(self, other: Producer) -> Producer:
        return Producer(
            min(self.first_offset, other.first_offset),
            max(self.last_offset, other.last_offset),
            min(self.low_epoch, other.low_epoch),
            max(self.high_epoch, other.high_epoch),
            self.batches + other.batches,
            self.records + other.records,
            self.transactional or other.transactional,
        )


@dataclass
class Producers:
    """Producers by id, the lowest ids; `more` if there are others."""

    by_id: dict[int, Producer] = field(default_factory=dict)
    more: bool = False

    def add(self, producer_id: int, seen: Producer) -> None:
        before = self.by_id.get(producer_id)
        self.by_id[producer_id] = seen if before is None else before.merge(seen)
        if len(self.by_id) > PRODUCERS_SHOWN:
            del self.by_id[max(self.by_id)]
            self.more = True

    def merge(self, other: Producers) -> Producers:
        found = Producers(dict(self.by_id), self.more or other.more)
        for producer_id, seen in other.by_id.items():
            found.add(producer_id, seen)
        return found
