"""The archive's side of a comparison: whether its files are what their manifest says, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from aiokwire.records import crc32c
from aiokwire.spark.pipelines.auditing.against import Comparison, Difference, common, find_differences, within
from aiokwire.spark.pipelines.manifest import DataFile, read_archive
from aiokwire.spark.pipelines.store import Store
from aiokwire.spark.planning import Range
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING_FILE: Final = "a file is missing"
OTHER_FILE: Final = "a file is not what it was"

_COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")
# A file's bytes that are looked at together.
_CHUNK: Final = 4 * 1024 * 1024


def compare(
    spark: SparkSession, options: Mapping[str, str], audited: Mapping[TopicPartition, tuple[int, int]], place: str
) -> Comparison:
    """Compare what the source's options name, of which `audited` has the offsets, with an archive.

    Raises: ConfigurationError: there is no archive; ArchiveDamaged: its manifests do not fit each other.
    """
    archive = read_archive(place)
    compared = common(audited, whole_ranges(archive.ranges))
    files = [file for file in archive.files if file.tp in compared and touches(file, *compared[file.tp])]
    damaged = check_files(spark, Store.at(place), files)
    sound = [file for file in files if file not in damaged]
    differences = [
        Difference(*file.tp, f"{why}: {file.path}", file.first, file.last, file.records)
        for file, why in damaged.items()
    ]
    records = 0
    if compared:
        source = {name: text for name, text in options.items() if name.lower() != "columns"}
        topic = spark.read.format("aiokwire").options(**source, columns=",".join(_COLUMNS)).load()
        paths = [f"{place.rstrip('/')}/{file.path}" for file in sound]
        rows = spark.read.parquet(*paths).select(*_COLUMNS) if paths else topic.limit(0)
        # What a damaged file had is told by its name, and not again by offset.
        lost = [Range(*file.tp, file.first, file.last + 1) for file in damaged]
        records, found = find_differences(within(topic, compared, lost), within(rows, compared, lost))
        differences += found
    ends = tuple((*tp, *edges) for tp, edges in compared.items())
    return Comparison(place, len(files), records, ends, tuple(differences))


def whole_ranges(ranges: Iterable[Range]) -> dict[TopicPartition, tuple[int, int]]:
    """From the first to the last offset that an archive has read of each partition; what it left out lies between."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    for each in ranges:
        start, end = found.get(each.tp, (each.start, each.end))
        found[each.tp] = (min(start, each.start), max(end, each.end))
    return found


def touches(file: DataFile, start: int, end: int) -> bool:
    """Whether a file may have records of these offsets."""
    return file.first < end and file.last >= start


def check_files(spark: SparkSession, store: Store, files: Sequence[DataFile]) -> dict[DataFile, str]:
    """The files that are gone, or have other bytes than they were written with. In Spark's tasks."""
    if not files:
        return {}
    slices = min(len(files), 4 * spark.sparkContext.defaultParallelism)
    told = spark.sparkContext.parallelize(files, slices).map(_Check(store)).collect()
    return {file: why for file, why in told if why}


class _Check:
    """What Spark takes to its workers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, file: DataFile) -> tuple[DataFile, str]:
        return file, check_file(self._store, file)


def check_file(store: Store, file: DataFile) -> str:
    """What is wrong with a file; empty when nothing is."""
    checksum = size = 0
    try:
        with store.open(file.path) as stream:
            while chunk := stream.read(_CHUNK):
                checksum = crc32c(chunk, checksum)
                size += len(chunk)
    except FileNotFoundError:
        return MISSING_FILE
    return "" if (size, checksum) == (file.bytes, file.crc32c) else OTHER_FILE
