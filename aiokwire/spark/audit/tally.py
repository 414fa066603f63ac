"""The counts of a range of offsets, from raw batches; only visible records are decoded.

    batches of a piece -> Tallying -> PartitionTally, merge -> one for each partition

Runs in Spark's tasks, which return tallies. No I/O.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aiokwire.errors import InvalidArgument
from aiokwire.records import Columns, RecordBatch, columns_to_arrow
from aiokwire.spark.audit.sketches import (
    Producer,
    Producers,
    Sizes,
    Stretches,
    TimeBuckets,
    Times,
    TopKeys,
    short_key,
    sums,
)
from aiokwire.spark.source.planning import Range
from aiokwire.types import Compression, TopicPartition

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The records, and the bytes of batches, that are counted at once.
ROWS_AT_ONCE: Final = 65_536
BYTES_AT_ONCE: Final = 8 * 1024 * 1024

# The bytes of a message of formats 0 and 1 besides its key and value.
_MESSAGE_OVERHEAD: Final = {0: 26, 1: 34}

# Types of control records.
_ABORT: Final = 0
_COMMIT: Final = 1


class Kind(enum.Enum):
    """The kind of a batch, as a reader sees it."""

    DATA = "data"
    ABORTED = "aborted"
    CONTROL = "control"


@dataclass
class Records:
    """Counts of the records that readers see."""

    count: int = 0
    first: int = -1
    last: int = -1
    """Offsets of the first and the last one."""
    null_keys: int = 0
    null_values: int = 0
    sizes: Sizes = field(default_factory=Sizes)
    """Bytes of key and value."""
    keys: TopKeys = field(default_factory=TopKeys)
    times: Times = field(default_factory=Times)

    def merge(self, later: Records) -> Records:
        some = self if self.count else later
        return Records(
            self.count + later.count,
            some.first,
            later.last if later.count else self.last,
            self.null_keys + later.null_keys,
            self.null_values + later.null_values,
            self.sizes.merge(later.sizes),
            self.keys.merge(later.keys),
            self.times.merge(later.times),
        )


@dataclass
class Batches:
    """Counts of batches; a batch belongs to the range that has its last offset."""

    bytes: Sizes = field(default_factory=Sizes)
    records: Sizes = field(default_factory=Sizes)
    by_codec: dict[str, int] = field(default_factory=dict)
    bytes_by_codec: dict[str, int] = field(default_factory=dict)
    by_format: dict[int, int] = field(default_factory=dict)
    producers: Producers = field(default_factory=Producers)

    def add(self, batch: RecordBatch) -> None:
        """Count a batch of format 2, or a compressed message of an older format."""
        self._add(batch.size, batch.count, batch.compression, batch.magic)
        if batch.producer_id >= 0:
            seen = Producer(
                batch.base_offset, batch.last_offset, batch.producer_epoch, batch.producer_epoch, 1, batch.count,
                batch.is_transactional,
            )  # fmt: skip
            self.producers.add(batch.producer_id, seen)

    def add_messages(self, sizes: Iterable[int], magic: int) -> None:
        """Count uncompressed messages of formats 0 and 1, each as a batch."""
        for size in sizes:
            self._add(size, 1, Compression.NONE, magic)

    def _add(self, size: int, records: int, codec: Compression, magic: int) -> None:
        name = codec.name.lower()
        self.bytes.add(size)
        self.records.add(records)
        self.by_codec[name] = self.by_codec.get(name, 0) + 1
        self.bytes_by_codec[name] = self.bytes_by_codec.get(name, 0) + size
        self.by_format[magic] = self.by_format.get(magic, 0) + 1

    def merge(self, other: Batches) -> Batches:
        return Batches(
            self.bytes.merge(other.bytes),
            self.records.merge(other.records),
            sums(self.by_codec, other.by_codec),
            sums(self.bytes_by_codec, other.bytes_by_codec),
            sums(self.by_format, other.by_format),
            self.producers.merge(other.producers),
        )


@dataclass
class PartitionTally:
    """The counts between two offsets of a partition; each offset is counted once."""

    topic: str
    partition: int
    start: int
    end: int
    records: Records = field(default_factory=Records)
    batches: Batches = field(default_factory=Batches)
    aborted: int = 0
    """Records of aborted transactions."""
    control: int = 0
    commits: int = 0
    aborts: int = 0
    """Control records by type."""
    compacted: Stretches = field(default_factory=Stretches)
    """Offsets missing inside a batch: only compaction removes these."""
    missing: Stretches = field(default_factory=Stretches)
    """Offsets between batches."""
    deleted: Stretches = field(default_factory=Stretches)
    """Offsets deleted by retention during the audit."""

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def merge(self, later: PartitionTally) -> PartitionTally:
        """Merge with a tally that begins where this one ends.

        Raises: InvalidArgument: `later` begins elsewhere.
        """
        if (later.tp, later.start) != (self.tp, self.end):
            raise InvalidArgument(
                f"a tally of {later.tp} from {later.start} on does not follow {self.tp} to {self.end}"
            )
        found = PartitionTally(self.topic, self.partition, self.start, later.end)
        for each in fields(self)[4:]:
            mine, its = getattr(self, each.name), getattr(later, each.name)
            setattr(found, each.name, mine + its if isinstance(mine, int) else mine.merge(its))
        return found


class Tallying:
    """Counts the batches of one range, in the order of their offsets."""

    def __init__(self, whole: Range) -> None:
        self._tally = PartitionTally(*whole)
        self._position = whole.start  # offsets before it are counted
        self._columns = Columns(headers=False)
        self._waiting = 0  # bytes of the batches in `_columns`

    def add(self, batches: Sequence[RecordBatch], hidden: Sequence[RecordBatch]) -> None:
        """Count the batches of a fetch, visible and hidden ones.

        Raises: CorruptRecord: the message names the offset.
        """
        ordered = [(batch.last_offset, batch, Kind.DATA) for batch in batches]
        ordered += [(each.last_offset, each, Kind.CONTROL if each.is_control else Kind.ABORTED) for each in hidden]
        for _, batch, kind in sorted(ordered, key=lambda item: item[0]):
            self._add(batch, kind)

    def skip_deleted(self, end: int) -> None:
        """Note that the log now begins at `end`."""
        self._tally.deleted.add(self._position, end)
        self._position = max(self._position, end)

    def finish(self) -> PartitionTally:
        """Return the counts; the rest of the range counts as missing."""
        self._flush()
        self._tally.missing.add(self._position, self._tally.end)
        self._position = self._tally.end
        return self._tally

    def _add(self, batch: RecordBatch, kind: Kind) -> None:
        if batch.magic < 2:
            batch.decompress()  # needed for its first offset and its count
        begin, end = max(batch.base_offset, self._position), min(batch.next_offset, self._tally.end)
        if begin >= end:
            return  # already counted, or after the range
        tally = self._tally
        tally.missing.add(self._position, begin)
        present = self._present(batch, begin, end)
        self._position = end
        if kind is Kind.CONTROL:
            tally.control += present
            marker = batch.control_type if present else None
            tally.commits += marker == _COMMIT
            tally.aborts += marker == _ABORT
        elif kind is Kind.ABORTED:
            tally.aborted += present
        else:
            batch.add_to(self._columns, begin, end)
            self._waiting += batch.size
        if batch.magic < 2 and batch.compression is Compression.NONE:
            tally.batches.add_messages(_message_sizes(batch, begin, end), batch.magic)
        elif batch.last_offset < tally.end:
            tally.batches.add(batch)
        if len(self._columns) >= ROWS_AT_ONCE or self._waiting >= BYTES_AT_ONCE:
            self._flush()

    def _present(self, batch: RecordBatch, begin: int, end: int) -> int:
        """Return the count of records between two offsets of a batch; note the missing offsets."""
        if batch.count == batch.next_offset - batch.base_offset:
            return end - begin
        # A batch of format 2 keeps its offset range after compaction; older ones have only the remaining offsets.
        holes = self._tally.compacted if batch.magic == 2 else self._tally.missing
        offsets = _offsets(batch, begin, end)
        position = begin
        for offset in offsets:
            holes.add(position, offset)
            position = offset + 1
        holes.add(position, end)
        return len(offsets)

    def _flush(self) -> None:
        if len(self._columns):
            self._tally.records = self._tally.records.merge(tally_records(columns_to_arrow(self._columns)))
            self._columns, self._waiting = Columns(headers=False), 0


def _offsets(batch: RecordBatch, begin: int, end: int) -> list[int]:
    columns = Columns(keys=False, values=False, headers=False)
    batch.add_to(columns, begin, end)
    found: Any = columns_to_arrow(columns).column("offset")
    return list(found.to_pylist())


def _message_sizes(batch: RecordBatch, begin: int, end: int) -> list[int]:
    columns = Columns(headers=False)
    batch.add_to(columns, begin, end)
    rows = columns_to_arrow(columns)
    sizes: list[int] = (_lengths(rows, "key") + _lengths(rows, "value") + _MESSAGE_OVERHEAD[batch.magic]).tolist()
    return sizes


# --- records ----------------------------------------------------------------------------------------------------------


def tally_records(rows: pa.RecordBatch) -> Records:
    """Count records, at least one, in the order of their offsets."""
    offsets = rows.column("offset")
    keys: Any = rows.column("key")
    counted = keys.drop_null().value_counts()
    counts: dict[bytes, int] = {}
    for key, count in zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True):
        short = short_key(key)
        counts[short] = counts.get(short, 0) + count
    return Records(
        len(rows),
        offsets[0].as_py(),
        offsets[-1].as_py(),
        keys.null_count,
        rows.column("value").null_count,
        tally_sizes(_lengths(rows, "key") + _lengths(rows, "value")),
        TopKeys().add(counts),
        tally_times(rows.column("timestamp").cast(pa.int64()).to_numpy()),
    )


def _lengths(rows: pa.RecordBatch, name: str) -> NDArray[np.int64]:
    """Return the bytes of each value; 0 for null."""
    column: Any = rows.column(name)
    lengths: Any = pc.binary_length(column)
    found: NDArray[np.int64] = lengths.fill_null(0).cast(pa.int64()).to_numpy()
    return found


def tally_sizes(numbers: NDArray[np.int64]) -> Sizes:
    """Compute `Sizes.of` for an array."""
    if not len(numbers):
        return Sizes()
    # A float's exponent is the number of binary digits, exactly up to 2**53.
    bits, counts = np.unique(np.frexp(numbers.astype(np.float64))[1], return_counts=True)
    by_bits = dict(zip(bits.tolist(), counts.tolist(), strict=True))
    return Sizes(len(numbers), int(numbers.sum()), int(numbers.min()), int(numbers.max()), by_bits)


def tally_times(times: NDArray[np.int64]) -> Times:
    """Count timestamps in offset order; -1 is none."""
    known = times[times >= 0]
    without = len(times) - len(known)
    if not len(known):
        return Times(without=without)
    highest = np.maximum.accumulate(known)
    return Times(
        len(known),
        without,
        int(known[0]),
        int(known[-1]),
        int(known.min()),
        int(known.max()),
        int(np.count_nonzero(np.diff(known) < 0)),
        int((highest - known).max()),
        _buckets(known),
    )


def _buckets(times: NDArray[np.int64]) -> TimeBuckets:
    starts, counts = np.unique(times, return_counts=True)
    width = 1
    while len(starts) > 4096:  # `TimeBuckets.of` reduces them further
        width *= 2
        starts, places = np.unique(starts // 2, return_inverse=True)
        counts = np.bincount(places, weights=counts).astype(np.int64)
    return TimeBuckets.of(dict(zip(starts.tolist(), counts.tolist(), strict=True)), width)
