"""Small summaries of many records: each part of a log gives one, and `merge` puts two together. No I/O.

Where the parts are cut makes no difference, with one exception: `TopKeys` above its bound, where each count has the
error that stands beside it.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

K = TypeVar("K")

# How many stretches of offsets are named; all are counted.
STRETCHES_SHOWN: Final = 20
# How many keys are counted exactly; above, each count may be too low by at most the records divided by this.
KEYS_COUNTED: Final = 5000
# How many producers of a partition are told apart.
PRODUCERS_SHOWN: Final = 200
# How many stretches of time a partition's records are counted in, at most.
TIME_BUCKETS: Final = 240
# A key longer than this is told by its beginning and a digest.
LONG_KEY: Final = 128


@dataclass
class Stretches:
    """Stretches of offsets in rising order; those that touch are one."""

    offsets: int = 0
    count: int = 0
    first: int = -1
    """Where the first stretch begins."""
    end: int = -1
    """Behind the last stretch."""
    shown: list[tuple[int, int]] = field(default_factory=list)
    """The first ones, each with the offset behind it."""

    def add(self, begin: int, end: int) -> None:
        """One more, behind those that are there."""
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
        """Both, `later` lying behind this one."""
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
    """Numbers from 0 on: how many, their sum, their range, and how many there are of each power of two."""

    count: int = 0
    total: int = 0
    least: int = 0
    most: int = 0
    by_bits: dict[int, int] = field(default_factory=dict)
    """How many numbers have so many binary digits: 0 for 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7."""

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
    """Counts added up."""
    found = dict(one)
    for name, count in other.items():
        found[name] = found.get(name, 0) + count
    return found


@dataclass
class TopKeys:
    """How often each key occurs: exactly for up to `most` keys, else for the frequent ones (Misra and Gries).

    With more keys the count of each may be too low by up to `error`, which is at most the records divided by `most`;
    a key that is not there has occurred at most so often.
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
            # What all give up was there for so many different keys that it cannot have been much.
            lost = sorted(counts.values(), reverse=True)[self.most]
            counts = {key: count - lost for key, count in counts.items() if count > lost}
            error += lost
        return TopKeys(self.most, records, error, counts)

    def add(self, counts: Mapping[bytes, int]) -> TopKeys:
        """The same with counts that are exact."""
        return self.merge(TopKeys(self.most, sum(counts.values()), 0, dict(counts)))

    def top(self, count: int) -> list[tuple[bytes, int]]:
        """The most frequent first; equal ones by key."""
        return heapq.nsmallest(count, self.counts.items(), key=lambda item: (-item[1], item[0]))


def short_key(key: bytes) -> bytes:
    """A key as it is counted: long ones must not fill the memory."""
    if len(key) <= LONG_KEY:
        return key
    return key[: LONG_KEY // 2] + b"... " + hashlib.sha256(key).hexdigest()[:32].encode()


@dataclass
class TimeBuckets:
    """How many records fall into each stretch of time; the stretches are as short as their number allows."""

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
        """When each stretch begins (milliseconds), and its records; in order of time."""
        return ((bucket * self.width, count) for bucket, count in sorted(self.counts.items()))


def _halved(counts: Mapping[int, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for bucket, count in counts.items():
        found[bucket // 2] = found.get(bucket // 2, 0) + count
    return found


@dataclass
class Times:
    """Timestamps in the order of their offsets; those of records that have none are not among them."""

    records: int = 0
    without: int = 0
    first: int = -1
    last: int = -1
    least: int = -1
    most: int = -1
    steps_back: int = 0
    """Records that are earlier than the one before them."""
    latest_by: int = 0
    """The largest time (milliseconds) by which a record is earlier than some record before it."""
    buckets: TimeBuckets = field(default_factory=TimeBuckets)

    def merge(self, later: Times) -> Times:
        """Both, `later` lying behind this one."""
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
    """What one idempotent producer has written to a partition."""

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
    """By producer id, those with the lowest ids; `more` when there are others."""

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
