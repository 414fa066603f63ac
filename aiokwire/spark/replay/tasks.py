"""A task of a replay: records of an archive in the order of their offsets, as rows for the sink.

    files of a partition -> merged by offset -> filtered by time -> rows for the sink -> brokers

The offsets of two days' files may interleave if timestamps are out of order: records are merged
into offset order.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

from aiokwire.producer import ProducerConfig, TransactionTicket
from aiokwire.spark.archive.manifest import ArchiveDamaged, DataFile
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.sink import exactly_once, writing
from aiokwire.spark.sink.columns import SinkColumns
from aiokwire.spark.sink.commit_messages import Written
from aiokwire.spark.sink.partition_owner import with_partitions
from aiokwire.spark.sink.writing import Joining
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

ROWS_PER_BATCH: Final = 32_768
COLUMNS: Final = ("key", "value", "headers", "timestamp")

# Headers with the coordinates of a record, if the option is set.
TOPIC_HEADER: Final = "aiokwire.topic"
PARTITION_HEADER: Final = "aiokwire.partition"
OFFSET_HEADER: Final = "aiokwire.offset"


@dataclasses.dataclass(frozen=True)
class Share:
    """The part of one task."""

    sources: tuple[tuple[Range, tuple[DataFile, ...]], ...]
    """Offsets, and the files that may have them."""
    owns: tuple[int, int] | None = None
    """(remainder, count): it writes the partitions with this remainder modulo count; None: all."""


@dataclasses.dataclass(frozen=True)
class Replaying:
    """The settings of a round, for its tasks."""

    store: Store
    config: ProducerConfig
    target: str | None
    """The topic; None: each record's own."""
    keep_partitions: bool
    partitions: int
    """Of the target, if keys choose and partitions have owners."""
    coordinates: bool
    since: int | None
    until: int | None
    """Milliseconds since the epoch: only records from `since` to before `until` are written."""
    number: int
    ticket: TransactionTicket | None
    """Of the round's transaction, with exactly-once."""


def write_share(replaying: Replaying, share: Share) -> Written:
    """Write a task's records, all acknowledged on return. Runs in Spark's Python workers.

    Raises: KafkaError: a record was not delivered; ArchiveDamaged: a file is missing.
    """
    context = TaskContext.get()
    task, joining = 0 if context is None else context.partitionId(), None
    if replaying.ticket is not None:
        task = exactly_once.place_of(context, streaming=False).task
        joining = Joining(replaying.ticket, task)
    names = ("topic", *(name for name in _names(replaying)))
    columns = SinkColumns(tuple((name, place) for place, name in enumerate(names) if place), 0, None)
    batches = (part for whole, files in share.sources for part in _rows(replaying, share, whole, files))
    tally = writing.run(functools.partial(writing.write, batches, replaying.config, columns, joining))
    return Written(task, tally.rows, tally.counts, replaying.ticket, replaying.number)


def _names(replaying: Replaying) -> tuple[str, ...]:
    producer_chooses = replaying.ticket is None and not replaying.keep_partitions
    return COLUMNS if producer_chooses else (*COLUMNS, "partition")


def _rows(replaying: Replaying, share: Share, whole: Range, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
    """Yield a source's records as rows for the sink, with the topic as the first column."""
    turn = 0
    for batch in ordered(replaying.store, files, whole, ("offset", *COLUMNS)):
        chosen = within(batch, replaying.since, replaying.until)
        if not chosen.num_rows:
            continue
        rows = as_rows(chosen, whole.tp, coordinates=replaying.coordinates)
        if replaying.keep_partitions:
            rows = rows.append_column("partition", pa.repeat(pa.scalar(whole.partition, pa.int32()), rows.num_rows))
        elif replaying.ticket is not None:
            rows = with_partitions(rows, replaying.partitions, turn % replaying.partitions)
            turn += rows.num_rows
            rows = owned(rows, share.owns)
        topic = pa.repeat(pa.scalar(replaying.target or whole.topic, pa.string()), rows.num_rows)
        if rows.num_rows:
            yield pa.RecordBatch.from_arrays([topic, *rows.columns], names=["topic", *rows.schema.names])


# --- rows -----------------------------------------------------------------------------------------------------------


def within(batch: pa.RecordBatch, since: int | None, until: int | None) -> pa.RecordBatch:
    """Filter records by time."""
    if since is None and until is None:
        return batch
    times: Any = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    mask: Any = pa.repeat(pa.scalar(True), batch.num_rows)
    if since is not None:
        mask = pc.and_(mask, pc.greater_equal(times, pa.scalar(since * 1000, pa.int64())))
    if until is not None:
        mask = pc.and_(mask, pc.less(times, pa.scalar(until * 1000, pa.int64())))
    return batch.filter(mask)


def as_rows(batch: pa.RecordBatch, tp: TopicPartition, *, coordinates: bool) -> pa.RecordBatch:
    """Return key, value, headers and timestamp; the sink sets missing times, which are null."""
    times: Any = batch.column("timestamp")
    known = pc.greater_equal(times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), pa.scalar(0, pa.int64()))
    times = pc.if_else(known, times, pa.scalar(None, times.type))
    headers: Any = batch.column("headers") if "headers" in batch.schema.names else None
    if coordinates:
        headers = with_coordinates(headers, tp, batch.column("offset"))
    elif headers is None:
        headers = pa.nulls(batch.num_rows, HEADERS)
    return pa.RecordBatch.from_arrays([batch.column("key"), batch.column("value"), headers, times], names=list(COLUMNS))


HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def with_coordinates(headers: Any, tp: TopicPartition, offsets: Any) -> Any:
    """Add three headers with each record's coordinates."""
    rows = len(offsets)
    if headers is None:
        headers = pa.nulls(rows, HEADERS)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(headers), 0))
    pairs: Any = headers.flatten()
    total = len(pairs)
    names = pa.array([TOPIC_HEADER, PARTITION_HEADER, OFFSET_HEADER], pa.string())
    places = pa.array([tp.topic.encode(), b"%d" % tp.partition], pa.binary())
    numbers = offsets.cast(pa.string()).cast(pa.binary())
    # All distinct names and values; `taken_*` are the indices that make up the new lists.
    all_names = pa.concat_arrays([pairs.field(0).cast(pa.string()), names])
    all_values = pa.concat_arrays([pairs.field(1).cast(pa.binary()), places, numbers])
    ends = np.cumsum(lengths + 3)
    taken_names = np.empty(total + 3 * rows, np.int64)
    taken_values = np.empty(total + 3 * rows, np.int64)
    old = np.arange(total) + 3 * np.repeat(np.arange(rows), lengths)
    taken_names[old] = taken_values[old] = np.arange(total)
    for place in range(3):
        taken_names[ends - 3 + place] = total + place
    taken_values[ends - 3], taken_values[ends - 2] = total, total + 1
    taken_values[ends - 1] = total + 2 + np.arange(rows)
    struct = pa.StructArray.from_arrays(
        [all_names.take(pa.array(taken_names)), all_values.take(pa.array(taken_values))], names=["key", "value"]
    )
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]), pa.int32()), struct)


def owned(rows: pa.RecordBatch, owns: tuple[int, int] | None) -> pa.RecordBatch:
    """Filter the rows of a task's own partitions."""
    if owns is None or owns[1] == 1:
        return rows
    numbers = np.asarray(rows.column("partition"))
    return rows.filter(pa.array(numbers % owns[1] == owns[0]))


# --- order ----------------------------------------------------------------------------------------------------------


def ordered(store: Store, files: Sequence[DataFile], whole: Range, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range in offset order; `columns` must include the offset.

    Raises: ArchiveDamaged: a file is missing.
    """
    waiting = sorted((file for file in files if meets(file, whole)), key=lambda file: file.first, reverse=True)
    open_: list[_Stream] = []
    try:
        while waiting or open_:
            # Open all files that may have a record before the last one buffered.
            while waiting and (not open_ or waiting[-1].first <= min(stream.last for stream in open_)):
                stream = _Stream(store, waiting.pop(), whole, columns)
                open_ += [stream] if stream.head is not None else []
            if not open_:
                return
            limit = min(stream.last for stream in open_)
            parts = [part for stream in open_ if (part := stream.take(limit)).num_rows]
            open_ = [stream for stream in open_ if stream.head is not None]
            yield parts[0] if len(parts) == 1 else _merged(parts)
    finally:
        for stream in open_:
            stream.close()


def meets(file: DataFile, whole: Range) -> bool:
    """Whether a file may have records of a range."""
    return file.tp == whole.tp and file.first < whole.end and file.last >= whole.start


def _merged(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(list(parts))
    order = pc.sort_indices(table, sort_keys=[("offset", "ascending")])
    return table.take(order).combine_chunks().to_batches()[0]


class _Stream:
    """The records of a file within a range."""

    def __init__(self, store: Store, file: DataFile, whole: Range, columns: Sequence[str]) -> None:
        try:
            self._source = store.open(file.path)
        except FileNotFoundError:
            raise ArchiveDamaged(f"{file.path}, which a manifest names, is missing") from None
        self._parquet = pq.ParquetFile(self._source)
        self._whole = whole
        names = [name for name in columns if name in self._parquet.schema_arrow.names]
        groups = [number for number in range(self._parquet.num_row_groups) if self._may_have(number)]
        self._batches = self._parquet.iter_batches(ROWS_PER_BATCH, row_groups=groups, columns=names)
        self.head: pa.RecordBatch | None = None
        self.last = -1
        """The offset of the last record of the head."""
        self._next()

    def _may_have(self, group: int) -> bool:
        found = self._parquet.metadata.row_group(group)
        columns = (found.column(number) for number in range(found.num_columns))
        statistics = next((each.statistics for each in columns if each.path_in_schema == "offset"), None)
        if statistics is None or statistics.min is None or statistics.max is None:
            return True
        return bool(statistics.min < self._whole.end and statistics.max >= self._whole.start)

    def _next(self) -> None:
        """Advance to the next batch with records of the range."""
        for batch in self._batches:
            offsets = np.asarray(batch.column("offset"))
            begin, end = np.searchsorted(offsets, [self._whole.start, self._whole.end])
            if begin < end:
                self.head, self.last = batch.slice(begin, end - begin), int(offsets[end - 1])
                return
        self.close()

    def take(self, limit: int) -> pa.RecordBatch:
        """Take the records of the head up to an offset."""
        assert self.head is not None
        if self.last <= limit:
            taken = self.head
            self._next()
            return taken
        count = int(np.searchsorted(np.asarray(self.head.column("offset")), limit, side="right"))
        taken, self.head = self.head.slice(0, count), self.head.slice(count)
        return taken

    def close(self) -> None:
        self.head = None
        self._parquet.close()
        self._source.close()
