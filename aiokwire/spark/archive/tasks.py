"""A task of an archive: offsets of a partition to Parquet files, without Spark's rows in between.

    Scan -> the kernel's columns -> Arrow -> one file for each day, rolled by size -> its DataFile

Files have temporary names until the driver commits them after all tasks. A repeated task writes
other files; those that no manifest names are deleted.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.types import StructType

from aiokwire.protocol import ZERO_UUID
from aiokwire.records import crc32c
from aiokwire.spark.archive.layout import END_OF_TIME, Layout, file_name, temporary
from aiokwire.spark.archive.manifest import DataFile
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.options import SourceOptions
from aiokwire.spark.session import session_for
from aiokwire.spark.source.convert import Converter
from aiokwire.spark.source.planning import Range
from aiokwire.spark.source.scan import Scan, arrow_batches
from aiokwire.types import TopicPartition

# A row group ends at either: the memory of each day that a task has open.
ROWS_PER_GROUP: Final = 1 << 20
BYTES_PER_GROUP: Final = 64 << 20
# Days that a task has open at a time. If the timestamps of a topic are more scattered, it closes the oldest, and
# starts another file for that day when it needs one.
MOST_OPEN: Final = 16

_ENCODED_BY_DICTIONARY: Final = ["timestampType"]
_WITH_STATISTICS: Final = ["offset", "timestamp"]


@dataclasses.dataclass(frozen=True)
class Writing:
    """The settings of a run, for its tasks."""

    store: Store
    options: SourceOptions
    columns: StructType
    layout: Layout
    compression: str
    file_bytes: int
    run: str
    topic_ids: Mapping[str, bytes]


@dataclasses.dataclass(frozen=True)
class Written:
    """A complete file under its temporary name."""

    temporary: str
    file: DataFile


def write_task(writing: Writing, ranges: tuple[Range, ...]) -> list[Written]:
    """Archive ranges. Runs in Spark's Python workers.

    Raises: LostData: with `onDataLoss=fail`; KafkaError: a broker cannot be reached, or refuses.
    """
    context = TaskContext.get()
    attempt = f"{writing.run}-{0 if context is None else context.taskAttemptId()}"
    session = session_for(writing.options.consumer)
    converter = Converter(writing.options, writing.columns)
    found: list[Written] = []
    for each in ranges:
        scan = Scan(session, writing.options, (each,), {each.topic: writing.topic_ids.get(each.topic, ZERO_UUID)})
        files = Files(writing, each, attempt)
        try:
            for batch in arrow_batches(scan.pieces(), converter.new_columns, converter):
                files.add(batch)
            found += files.finish()
        finally:
            scan.close()
            files.abandon()
    return found


class Files:
    """The files of a partition's records, by day or hour."""

    def __init__(self, writing: Writing, whole: Range, attempt: str) -> None:
        self._writing = writing
        self._tp = whole.tp
        self._start = whole.start
        self._attempt = attempt
        self._open: dict[int, _File] = {}  # by slot, oldest first
        self._begun = 0
        self._done: list[Written] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Write records, which are in the order of their offsets."""
        for slot, part in by_slot(batch, self._writing.layout):
            file = self._open.get(slot)
            if file is None:
                if len(self._open) >= MOST_OPEN:
                    self._close(next(iter(self._open)))
                file = self._open[slot] = self._begin(slot, part.schema)
            file.add(part)
            if file.size >= self._writing.file_bytes:
                self._close(slot)

    def finish(self) -> list[Written]:
        """Close the open files, and return all files of the partition."""
        while self._open:
            self._close(next(iter(self._open)))
        return self._done

    def abandon(self) -> None:
        """Close the open files after a failure; they are deleted later."""
        while self._open:
            _, file = self._open.popitem()
            file.abandon()

    def _begin(self, slot: int, schema: pa.Schema) -> _File:
        writing = self._writing
        folder = writing.layout.folder(self._tp, slot)
        self._begun += 1
        path = temporary(f"{folder}/{self._start}-{self._begun}", self._attempt)
        return _File(writing, self._tp, folder, path, schema)

    def _close(self, slot: int) -> None:
        self._done.append(self._open.pop(slot).close())


class _File:
    """A Parquet file while it is written."""

    def __init__(self, writing: Writing, tp: TopicPartition, folder: str, path: str, schema: pa.Schema) -> None:
        self._tp = tp
        self._folder = folder
        self._path = path
        self._schema = schema
        self._context = writing.store.writing(path)
        self._sink = Summed(self._context.__enter__())
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._sink, "w"), schema, **parquet_options(writing.compression, schema)
        )
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0  # of those
        self._records = 0
        self._first = self._last = -1
        self._earliest: int | None = None
        self._latest = -1

    @property
    def size(self) -> int:
        """The bytes written so far."""
        return self._sink.size

    def add(self, batch: pa.RecordBatch) -> None:
        offsets, times = batch.column("offset"), milliseconds(batch)
        if self._first < 0:
            self._first = offsets[0].as_py()
        self._last = offsets[-1].as_py()
        self._records += batch.num_rows
        least, most = times
        self._earliest = least if self._earliest is None else min(self._earliest, least)
        self._latest = max(self._latest, most)
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= ROWS_PER_GROUP or self._bytes >= BYTES_PER_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._batches:
            table = pa.Table.from_batches(self._batches, self._schema)
            self._writer.write_table(table, row_group_size=self._rows)
        self._batches, self._rows, self._bytes = [], 0, 0

    def close(self) -> Written:
        """Complete the file and sync it to the disk."""
        self._flush()
        self._writer.close()
        self._context.__exit__(None, None, None)
        path = f"{self._folder}/{file_name(self._tp, self._first, self._last)}"
        assert self._earliest is not None
        sink = self._sink
        file = DataFile(
            *self._tp, self._first, self._last, path, self._records, sink.size, self._earliest, self._latest, sink.crc
        )
        return Written(self._path, file)

    def abandon(self) -> None:
        self._writer.close()
        self._context.__exit__(None, None, None)


class Summed(io.RawIOBase):
    """A file for pyarrow's writer that counts and checksums bytes; it does not close the file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.size: int = 0
        self.crc: int = 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        whole = view.nbytes
        self.crc = crc32c(view, self.crc)
        self.size += whole
        while view.nbytes:  # an unbuffered file may write a part of it
            view = view[self._file.write(view) :]
        return whole

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size


def parquet_options(compression: str, schema: pa.Schema) -> dict[str, Any]:
    """Return the options of Parquet's encodings: fast to write, and small where that is free."""
    return {
        "compression": compression,
        "use_dictionary": [name for name in _ENCODED_BY_DICTIONARY if name in schema.names],
        "write_statistics": [name for name in _WITH_STATISTICS if name in schema.names],
        "store_schema": False,
    }


def milliseconds(batch: pa.RecordBatch) -> tuple[int, int]:
    """Return the earliest and the latest time in a batch."""
    times: Any = batch.column("timestamp").cast(pa.int64())
    found = pc.min_max(times)
    return found["min"].as_py() // 1000, found["max"].as_py() // 1000


def by_slot(batch: pa.RecordBatch, layout: Layout) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the records of a batch by day or hour, in their order."""
    earliest, latest = milliseconds(batch)
    first, last = layout.slot(earliest), layout.slot(latest)
    if first == last and (first >= 0 or latest < 0 or earliest >= END_OF_TIME):
        yield first, batch
        return
    times: Any = batch.column("timestamp").cast(pa.int64())
    numbers = pc.divide(times, pa.scalar(layout.unit * 1000, pa.int64()))
    usable = pc.and_(
        pc.greater_equal(times, pa.scalar(0, pa.int64())), pc.less(numbers, pa.scalar(layout.slot_end, pa.int64()))
    )
    slots: Any = pc.if_else(usable, numbers, pa.scalar(-1, pa.int64()))
    for slot in pc.unique(slots).to_pylist():
        yield slot, batch.filter(pc.equal(slots, pa.scalar(slot, pa.int64())))
