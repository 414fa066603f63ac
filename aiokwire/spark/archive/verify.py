"""`verify`: compares the files of an archive with its manifests, by checksum and by record."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from aiokwire.records import crc32c
from aiokwire.spark.archive.layout import is_data
from aiokwire.spark.archive.manifest import Archive, DataFile, missing, read_archive
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.jobs.progress import Progress, watch
from aiokwire.spark.jobs.spark_session import spark_session
from aiokwire.spark.jobs.stopping import Stop

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

_CHUNK: Final = 8 << 20
MOST_FAULTS: Final = 100


@dataclasses.dataclass(frozen=True)
class Verified:
    """The result of `verify`."""

    path: str
    files: int
    records: int
    bytes: int
    gaps: tuple[str, ...]
    """Offsets that were lost before they were archived, and reported then: not a fault."""
    faults: tuple[str, ...]
    seconds: float

    @property
    def failed(self) -> bool:
        return bool(self.faults)


def verify(
    path: str | os.PathLike[str],
    *,
    spark: SparkSession | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Read every file of an archive, compare it with its manifest, and look for unnamed files.

    Raises: ConfigurationError: no such archive; ArchiveDamaged: its manifests are inconsistent;
        Stopped.
    """
    began = time.perf_counter()
    store = Store.at(path)
    archive = read_archive(store)
    session = spark_session("aiokwire verify", given=spark)
    context = session.sparkContext
    job = functools.partial(check_file, store)

    def work() -> list[list[str]]:
        slices = min(len(archive.files), 8 * context.defaultParallelism)
        return context.parallelize(archive.files, slices).map(job).collect() if archive.files else []

    tick = None if progress is None else watch(session, progress, "groups of files")
    found = (stop or Stop()).job(session, work, tick=tick)
    faults = [*strays(store, archive), *overlaps(archive.files), *itertools.chain.from_iterable(found)]
    return Verified(
        path=store.root,
        files=len(archive.files),
        records=archive.records,
        bytes=archive.bytes,
        gaps=tuple(f"{each.topic}[{each.partition}]: {each.start} to {each.end - 1}" for each in missing(archive)),
        faults=tuple(faults[:MOST_FAULTS]),
        seconds=time.perf_counter() - began,
    )


def strays(store: Store, archive: Archive) -> list[str]:
    """Report data files that no manifest names, but that a reader of the directory would read."""
    named = {file.path for file in archive.files}
    found = [path for path in store.files(recursive=True) if is_data(path) and path not in named]
    return [f"{path}: no manifest names it" for path in found]


def overlaps(files: Sequence[DataFile]) -> list[str]:
    """Report files of one directory that have the same offsets."""
    found = []
    by_folder = sorted(files, key=lambda file: (file.path.rpartition("/")[0], file.first))
    for before, after in itertools.pairwise(by_folder):
        same = before.path.rpartition("/")[0] == after.path.rpartition("/")[0]
        if same and after.first <= before.last:
            found.append(f"{after.path}: begins before {before.path} ends")
    return found


def check_file(store: Store, file: DataFile) -> list[str]:
    """Report the faults of a file, in a task."""
    try:
        with store.open(file.path) as source:
            if (size := source.size()) != file.bytes:
                return [f"{file.path}: it has {size} bytes, not {file.bytes} as in its manifest"]
            crc = 0
            while chunk := source.read(_CHUNK):
                crc = crc32c(chunk, crc)
            if crc != file.crc32c:
                return [f"{file.path}: its checksum is not that of its manifest"]
            source.seek(0)
            with pq.ParquetFile(source) as parquet:
                return [f"{file.path}: {fault}" for fault in check_records(parquet, file)]
    except FileNotFoundError:
        return [f"{file.path}: it is missing"]
    except (OSError, pa.ArrowException) as error:
        return [f"{file.path}: {error}"]


def check_records(parquet: pq.ParquetFile, file: DataFile) -> list[str]:
    """Report faults of a file's records, by their offsets and times."""
    last = -1
    records = 0
    earliest, latest = None, None
    for batch in parquet.iter_batches(batch_size=1 << 20, columns=["offset", "timestamp"]):
        if not batch.num_rows:
            continue
        offsets: Any = batch.column("offset")
        if records == 0 and offsets[0].as_py() != file.first:
            return [f"its first record has offset {offsets[0].as_py()}, not {file.first} as in its manifest"]
        steps = pc.subtract(offsets[1:], offsets[:-1])
        if offsets[0].as_py() <= last or (len(steps) and pc.min(steps).as_py() <= 0):
            return ["its offsets do not increase"]
        last = offsets[-1].as_py()
        records += batch.num_rows
        times: Any = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        found = pc.min_max(times)
        earliest = min(found["min"].as_py(), earliest if earliest is not None else found["min"].as_py())
        latest = max(found["max"].as_py(), latest if latest is not None else found["max"].as_py())
    if (records, last) != (file.records, file.last):
        return [
            f"it has {records} records up to offset {last}, not {file.records} up to {file.last} as in its manifest"
        ]
    if (
        earliest is None
        or latest is None
        or (earliest // 1000, latest // 1000) != (file.min_timestamp, file.max_timestamp)
    ):
        return ["its times are not those of its manifest"]
    return []
