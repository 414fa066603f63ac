"""`compact`: merges small files of an archive that belong to one partition and one day (or hour).

    small neighbours -> a Spark job merges them -> a manifest that replaces all earlier ones

Readers of the manifests see the state before or after. Readers that only list the directory may,
during a few renames, see neither a day's old files nor the new one, but never a record
twice.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from aiokwire.errors import ConfigurationError
from aiokwire.spark.archive import manifest as manifests
from aiokwire.spark.archive.archive import FILE_BYTES, LOCK
from aiokwire.spark.archive.commit import commit, recover, sweep
from aiokwire.spark.archive.layout import file_name, temporary
from aiokwire.spark.archive.manifest import Archive, ArchiveDamaged, DataFile, Manifest
from aiokwire.spark.archive.tasks import BYTES_PER_GROUP, ROWS_PER_GROUP, Summed, Written, parquet_options
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.jobs.spark_session import spark_session
from aiokwire.spark.jobs.stopping import Stop

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession


@dataclasses.dataclass(frozen=True)
class Compacted:
    """The result of a compaction."""

    path: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    records: int
    seconds: float


def compact(
    path: str | os.PathLike[str],
    *,
    file_bytes: int = FILE_BYTES,
    compression: str = "snappy",
    spark: SparkSession | None = None,
    stop: Stop | None = None,
) -> Compacted:
    """Merge files smaller than `file_bytes`, and all manifests of an archive.

    Raises: ConfigurationError: the archive does not exist; ArchiveDamaged: a file differs from its
        manifest; Stopped: a stop was requested, nothing was changed; JobFailed: Spark's job failed.
    """
    began = time.perf_counter()
    store = Store.at(path)
    stop = stop or Stop()
    with store.alone(LOCK):
        before = recover(store)
        if not before.number:
            raise ConfigurationError(f"{store.root} is not an archive: it has no manifest")
        groups = neighbours(before.files, file_bytes)
        written: list[Written] = []
        if groups:
            session = spark_session("aiokwire compact", given=spark)
            job = functools.partial(_merge, store, compression, uuid.uuid4().hex[:12])
            context = session.sparkContext
            written = stop.job(session, lambda: context.parallelize(groups, len(groups)).map(job).collect())
        if groups or before.number != before.begins:
            commit(store, _replacing(before, groups), written)
        after = manifests.load(store)
        sweep(store, after)
    return Compacted(
        path=store.root,
        files_before=len(before.files),
        files_after=len(after.files),
        bytes_before=before.bytes,
        bytes_after=after.bytes,
        records=after.records,
        seconds=time.perf_counter() - began,
    )


def neighbours(files: Sequence[DataFile], file_bytes: int) -> list[tuple[DataFile, ...]]:
    """Group files of one directory, in offset order, into files of at most `file_bytes`."""
    found: list[tuple[DataFile, ...]] = []
    by_folder = sorted(files, key=lambda file: (file.path.rpartition("/")[0], file.first))
    for _, folder in itertools.groupby(by_folder, key=lambda file: file.path.rpartition("/")[0]):
        group: list[DataFile] = []
        for file in folder:
            if sum(each.bytes for each in group) + file.bytes > file_bytes:
                found.append(tuple(group))
                group = []
            group.append(file)
        found.append(tuple(group))
    return [group for group in found if len(group) > 1]


def _replacing(before: Archive, groups: Sequence[Sequence[DataFile]]) -> Manifest:
    """Return the manifest that replaces all others, still without the new files."""
    removed = {file.path for group in groups for file in group}
    return Manifest(
        number=before.number + 1,
        ranges=before.ranges,
        files=tuple(file for file in before.files if file.path not in removed),
        replaces=True,
        topic_ids=before.topic_ids,
        layout=before.layout,
        removes=tuple(sorted(removed)),
    )


def _merge(store: Store, compression: str, run: str, group: Sequence[DataFile]) -> Written:
    """Merge files into one, in a task.

    Raises: ArchiveDamaged: a file is missing, or its records differ from its manifest.
    """
    context = TaskContext.get()
    attempt = f"{run}-{0 if context is None else context.taskAttemptId()}"
    first, last = group[0], group[-1]
    path = f"{first.path.rpartition('/')[0]}/{file_name(first.tp, first.first, last.last)}"
    hidden = temporary(path, attempt)
    with store.writing(hidden) as file:
        sink = Summed(file)
        records = _copy(store, compression, group, sink)
    if records != sum(each.records for each in group):
        raise ArchiveDamaged(
            f"the files to merge into {path} have {records} records, which is not the manifest's count"
        )
    whole = DataFile(
        *first.tp,
        first.first,
        last.last,
        path,
        records,
        sink.size,
        min(each.min_timestamp for each in group),
        max(each.max_timestamp for each in group),
        sink.crc,
    )
    return Written(hidden, whole)


def _copy(store: Store, compression: str, group: Sequence[DataFile], sink: Summed) -> int:
    writer: pq.ParquetWriter | None = None
    tables: list[pa.Table] = []
    records = 0
    for each in group:
        try:
            source = store.open(each.path)
        except FileNotFoundError:
            raise ArchiveDamaged(f"{each.path} is missing") from None
        with source, pq.ParquetFile(source) as parquet:
            for number in range(parquet.num_row_groups):
                tables.append(parquet.read_row_group(number))
                records += tables[-1].num_rows
                if writer is None:
                    schema = tables[0].schema
                    writer = pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, **parquet_options(compression, schema))
                if (
                    sum(t.num_rows for t in tables) >= ROWS_PER_GROUP
                    or sum(t.nbytes for t in tables) >= BYTES_PER_GROUP
                ):
                    tables = _flush(writer, tables)
    if writer is not None:
        _flush(writer, tables)
        writer.close()
    return records


def _flush(writer: pq.ParquetWriter, tables: Sequence[pa.Table]) -> list[pa.Table]:
    if tables:
        table = pa.concat_tables(tables)
        writer.write_table(table, row_group_size=max(1, table.num_rows))
    return []
