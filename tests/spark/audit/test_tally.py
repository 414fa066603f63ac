"""Counts of raw batches, compared with a plain count of the same log."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import InvalidArgument
from aiokwire.records import BatchBuilder, RecordBatch, read_batches
from aiokwire.spark.audit.sketches import Sizes, TimeBuckets
from aiokwire.spark.audit.tally import (
    Kind,
    PartitionTally,
    Tallying,
    tally_sizes,
    tally_times,
)
from aiokwire.spark.source.planning import Range
from aiokwire.types import Compression


class Row(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Written(NamedTuple):
    """A batch of a log: its description and its bytes."""

    kind: Kind
    rows: list[Row]
    whole: Range
    """The offsets before compaction."""
    batch: RecordBatch


def write(base: int, size: int, kind: Kind, kept: Sequence[int], *, magic: int = 2, **options: int) -> Written:
    """Write a batch of `size` offsets; after compaction only those in `kept` remain."""
    rows = [
        Row(base + delta, 1000 + (base + delta) * 7 % 50, None if delta % 4 == 3 else b"%d" % (delta % 3), b"v" * delta)
        for delta in kept
    ]
    builder = BatchBuilder(magic, 1 << 20)
    for row in rows:
        builder.append_at(row.offset - base, row.timestamp, b"\0\0\0\1" if kind is Kind.CONTROL else row.key, row.value)
    codec = Compression(options.get("codec", 0))
    producer = -1 if kind is Kind.DATA and magic < 2 else options.get("producer", 7)
    sealed = builder.seal(
        base_offset=base, compression=codec, producer_id=producer, producer_epoch=0, base_sequence=0,
        transactional=kind is not Kind.DATA, control=kind is Kind.CONTROL,
    )  # fmt: skip
    data = bytearray(sealed)
    if magic == 2:  # the last offset stays when its record is compacted
        data[23:27] = (size - 1).to_bytes(4, "big")
    [batch] = read_batches(data, "t", 0, check_crcs=False)
    return Written(kind, rows, Range("t", 0, base, base + size), batch)


@st.composite
def logs(draw: st.DrawFn) -> list[Written]:
    """Draw batches of all kinds, with gaps in them and between them."""
    found: list[Written] = []
    at = draw(st.integers(0, 5))
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from([Kind.DATA, Kind.DATA, Kind.ABORTED, Kind.CONTROL]))
        size = 1 if kind is Kind.CONTROL else draw(st.integers(1, 12))
        kept = sorted(draw(st.sets(st.integers(0, size - 1), min_size=1)))
        codec = draw(st.sampled_from([0, 1, 4]))
        found.append(write(at, size, kind, kept, codec=codec, producer=draw(st.integers(1, 4))))
        at += size + draw(st.sampled_from([0, 0, 0, 3]))
    return found


def tally(log: Sequence[Written], start: int, end: int) -> PartitionTally:
    """Tally as one task does: brokers send whole batches, even if a range starts inside one."""
    tallying = Tallying(Range("t", 0, start, end))
    sent = [written for written in log if written.batch.last_offset >= start and written.whole.start < end]
    for part in itertools.batched(sent, 3) if hasattr(itertools, "batched") else [sent[:2], sent[2:]]:
        shown = [written.batch for written in part if written.kind is Kind.DATA]
        tallying.add(shown, [written.batch for written in part if written.kind is not Kind.DATA])
    return tallying.finish()


@given(logs(), st.lists(st.integers(0, 120), max_size=4), st.integers(0, 4))
def test_the_count_of_a_log_does_not_depend_on_where_it_is_cut(
    log: list[Written], cuts: list[int], beyond: int
) -> None:
    end = (log[-1].whole.end if log else 10) + beyond
    whole = tally(log, 0, end)
    edges = [0, *sorted(min(cut, end) for cut in cuts), end]
    parts = [tally(log, start, stop) for start, stop in itertools.pairwise(edges)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    assert merged == whole


@given(logs())
def test_each_offset_is_counted_once(log: list[Written]) -> None:
    end = (log[-1].whole.end if log else 10) + 2
    found = tally(log, 0, end)
    rows = {kind: [row for written in log if written.kind is kind for row in written.rows] for kind in Kind}
    seen = rows[Kind.DATA]
    had = {offset for written in log for offset in range(written.whole.start, written.whole.end)}
    there = {row.offset for kind in Kind for row in rows[kind]}
    assert (found.records.count, found.aborted, found.control) == tuple(len(rows[kind]) for kind in Kind)
    assert found.compacted.offsets == len(had - there)
    assert found.missing.offsets == end - len(had)
    assert found.records.count + found.aborted + found.control + len(had - there) + end - len(had) == end
    assert found.records.null_keys == sum(row.key is None for row in seen)
    assert found.records.keys.counts == Counter(row.key for row in seen if row.key is not None)
    assert found.records.sizes == Sizes.of(len(row.key or b"") + len(row.value or b"") for row in seen)
    assert (found.records.first, found.records.last) == ((seen[0].offset, seen[-1].offset) if seen else (-1, -1))
    assert found.records.times == tally_times(np.array([row.timestamp for row in seen], np.int64))
    assert found.batches.bytes == Sizes.of(written.batch.size for written in log)
    assert sum(found.batches.by_codec.values()) == len(log)
    assert sum(seen.batches for seen in found.batches.producers.by_id.values()) == len(log)


def test_commit_and_abort_markers_are_counted_separately() -> None:
    found = Tallying(Range("t", 0, 0, 2))
    builder = BatchBuilder()
    builder.append(0, b"\0\0\0\0", b"")
    abort = builder.seal(transactional=True, control=True, base_offset=1)
    commit = write(0, 1, Kind.CONTROL, [0])
    found.add([], [*read_batches(abort, "t", 0), commit.batch])
    tally = found.finish()
    assert (tally.control, tally.commits, tally.aborts) == (2, 1, 1)


@pytest.mark.parametrize("magic", [0, 1])
def test_uncompressed_messages_of_old_formats_are_counted_alike_wherever_a_run_is_split(magic: int) -> None:
    builder = BatchBuilder(magic, 1 << 16)
    for delta in (0, 1, 2, 5, 6):  # compacted: an old log only has the remaining messages
        builder.append_at(delta, 100 + delta, b"k", b"v" * delta)
    data = bytes(builder.seal())

    def tally(start: int, end: int) -> PartitionTally:
        tallying = Tallying(Range("t", 0, start, end))
        tallying.add(read_batches(data, "t", 0), [])
        return tallying.finish()

    whole = tally(0, 7)
    assert all(tally(0, cut).merge(tally(cut, 7)) == whole for cut in range(1, 7))
    assert whole.batches.bytes.total == len(data)
    assert whole.batches.by_format == {magic: 5}
    assert whole.missing.shown == [(3, 5)]
    assert whole.records.times.without == (5 if magic == 0 else 0)


def test_compressed_messages_of_old_formats_count_as_batches() -> None:
    builder = BatchBuilder(1, 1 << 16)
    for number in range(3):
        builder.append(number, None, b"value")
    data = bytes(builder.seal(compression=Compression.GZIP))
    tallying = Tallying(Range("t", 0, 0, 3))
    tallying.add(read_batches(data, "t", 0), [])
    tally = tallying.finish()
    assert (tally.records.count, tally.missing.offsets) == (3, 0)
    assert (tally.batches.by_codec, tally.batches.records.most) == ({"gzip": 1}, 3)


def test_records_that_retention_deletes_during_the_audit_are_not_missing() -> None:
    tallying = Tallying(Range("t", 0, 0, 20))
    tallying.add([write(0, 5, Kind.DATA, range(5)).batch], [])
    tallying.skip_deleted(12)
    tallying.add([write(10, 10, Kind.DATA, range(10)).batch], [])
    tally = tallying.finish()
    assert (tally.records.count, tally.missing.offsets, tally.deleted.shown) == (13, 0, [(5, 12)])


def test_tallies_that_are_not_adjacent_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"t\[0\] from 5 on does not follow t\[0\] to 4"):
        PartitionTally("t", 0, 0, 4).merge(PartitionTally("t", 0, 5, 6))


@given(st.lists(st.integers(0, 2**45)))
def test_sizes_counted_at_once_equal_sizes_counted_one_by_one(numbers: list[int]) -> None:
    assert tally_sizes(np.array(numbers, np.int64)) == Sizes.of(numbers)


def test_times_counted_at_once_fall_into_the_same_buckets() -> None:
    times = np.arange(0, 200_000, 3, dtype=np.int64)
    found = tally_times(times)
    assert found.buckets == TimeBuckets.of(dict.fromkeys(times.tolist(), 1))
    assert (found.steps_back, found.latest_by) == (0, 0)
