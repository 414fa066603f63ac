"""The archive's side of a comparison: whether its files are what their manifest says, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from aiokwire.errors import ConfigurationError
from aiokwire.spark.archive.manifest import Archive, DataFile, read_archive
from aiokwire.spark.archive.verify import check_file
from aiokwire.spark.audit.against import Comparison, Difference, common, find_differences, within
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ISOLATION: Final = "kafka.isolation.level"


def compare(
    spark: SparkSession, options: Mapping[str, str], audited: Mapping[TopicPartition, tuple[int, int]], place: str
) -> Comparison:
    """Compare what the source's options name, of which `audited` has the offsets, with an archive.

    Raises: ConfigurationError: there is no archive, or its records were decoded; ArchiveDamaged: its manifests do not
        fit each other.
    """
    archive = read_archive(place)
    compared = common(audited, whole_ranges(archive.ranges))
    files = [file for file in archive.files if file.tp in compared and touches(file, *compared[file.tp])]
    damaged = check_files(spark, Store.at(place), files)
    differences = [Difference(*file.tp, fault, file.first, file.last, file.records) for file, fault in damaged.items()]
    records = 0
    if compared:
        parts = compared_parts(archive)
        isolation = archive.layout.get("isolation", "read_committed")
        chosen = {name: text for name, text in options.items() if name.lower() != "columns"}
        chosen |= {_ISOLATION: isolation, "columns": ",".join(["topic", "partition", "offset", *parts])}
        topic = spark.read.format("aiokwire").options(**chosen).load()
        readable = [file for file in files if file not in damaged]
        rows = archived_rows(spark, place, archive, readable)
        records, found = find_differences(within(topic, compared), within(rows, compared), parts)
        differences += found
    ends = tuple((*tp, *edges) for tp, edges in compared.items())
    return Comparison(place, len(files), records, ends, tuple(differences))


def compared_parts(archive: Archive) -> list[str]:
    """What of a record the archive has, to compare.

    Raises: ConfigurationError: keys or values were decoded, so that their bytes are not there.
    """
    columns = columns_of(archive)
    for name in ("key", "value"):
        if columns.get(name) != "binary":
            raise ConfigurationError(f"the archive has its {name}s decoded, so that they cannot be compared")
    return [name for name in ("key", "value", "headers", "timestamp") if name in columns]


def columns_of(archive: Archive) -> dict[str, str]:
    """The columns of the files and their types, without what is in these."""
    from pyspark.sql.types import StructType

    schema: Any = StructType.fromDDL(str(archive.layout.get("schema", "")))
    return {field.name: field.dataType.typeName() for field in schema.fields}


def archived_rows(spark: SparkSession, place: str, archive: Archive, files: Sequence[DataFile]) -> DataFrame:
    """The rows of these files, with topic and partition, which only the names of their directories have."""
    schema = f"{archive.layout['schema']}, topic string, partition int"
    if not files:
        return spark.createDataFrame([], schema)
    reader: Any = spark.read.schema(schema).option("basePath", place)
    found: DataFrame = reader.parquet(*(f"{place.rstrip('/')}/{file.path}" for file in files))
    return found


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
    """The files that are gone, or not what they were when they were written, and why. In Spark's tasks."""
    if not files:
        return {}
    slices = min(len(files), 4 * spark.sparkContext.defaultParallelism)
    told = spark.sparkContext.parallelize(files, slices).map(_Check(store)).collect()
    return {file: faults[0] for file, faults in told if faults}


class _Check:
    """What Spark takes to its workers."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, file: DataFile) -> tuple[DataFile, list[str]]:
        return file, check_file(self._store, file)
