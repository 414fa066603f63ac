"""The archive's side of a comparison: the check of its files, and their rows."""

from __future__ import annotations

import functools
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
    """Compare the topics of the source's options, at the `audited` offsets, with an archive.

    Raises: ConfigurationError: no such archive, or its records were decoded; ArchiveDamaged:
        its manifests are inconsistent.
    """
    archive = read_archive(place)
    compared = common(audited, whole_ranges(archive.ranges))
    files = [file for file in archive.files if file.tp in compared and touches(file, *compared[file.tp])]
    faults = check_files(spark, Store.at(place), files)
    differences = [Difference(*file.tp, fault, file.first, file.last, file.records) for file, fault in faults.items()]
    records = 0
    if compared:
        parts = compared_parts(archive)
        isolation = archive.layout.get("isolation", "read_committed")
        chosen = {name: text for name, text in options.items() if name.lower() != "columns"}
        chosen |= {_ISOLATION: isolation, "columns": ",".join(["topic", "partition", "offset", *parts])}
        topic = spark.read.format("aiokwire").options(**chosen).load()
        readable = [file for file in files if file not in faults]
        rows = archived_rows(spark, place, archive, readable)
        records, found = find_differences(within(topic, compared), within(rows, compared), parts)
        differences += found
    ends = tuple((*tp, *edges) for tp, edges in compared.items())
    return Comparison(place, len(files), records, ends, tuple(differences))


def compared_parts(archive: Archive) -> list[str]:
    """Return the parts of a record that the archive has.

    Raises: ConfigurationError: it has decoded keys or values, not their bytes.
    """
    columns = columns_of(archive)
    for name in ("key", "value"):
        if columns.get(name) != "binary":
            raise ConfigurationError(f"the archive holds decoded {name}s, which cannot be compared")
    return [name for name in ("key", "value", "headers", "timestamp") if name in columns]


def columns_of(archive: Archive) -> dict[str, str]:
    """Return the columns of the files with the names of their types, without element types."""
    from pyspark.sql.types import StructType

    schema: Any = StructType.fromDDL(str(archive.layout.get("schema", "")))
    return {field.name: field.dataType.typeName() for field in schema.fields}


def archived_rows(spark: SparkSession, place: str, archive: Archive, files: Sequence[DataFile]) -> DataFrame:
    """Return the rows of files, with topic and partition from the names of their directories."""
    schema = f"{archive.layout['schema']}, topic string, partition int"
    if not files:
        return spark.createDataFrame([], schema)
    reader: Any = spark.read.schema(schema).option("basePath", place)
    found: DataFrame = reader.parquet(*(f"{place.rstrip('/')}/{file.path}" for file in files))
    return found


def whole_ranges(ranges: Iterable[Range]) -> dict[TopicPartition, tuple[int, int]]:
    """Return the first and the end offset of each partition in an archive, ignoring gaps."""
    found: dict[TopicPartition, tuple[int, int]] = {}
    for each in ranges:
        start, end = found.get(each.tp, (each.start, each.end))
        found[each.tp] = (min(start, each.start), max(end, each.end))
    return found


def touches(file: DataFile, start: int, end: int) -> bool:
    """Whether a file may have records of these offsets."""
    return file.first < end and file.last >= start


def check_files(spark: SparkSession, store: Store, files: Sequence[DataFile]) -> dict[DataFile, str]:
    """Return missing and changed files with their faults, checked in Spark's tasks."""
    if not files:
        return {}
    slices = min(len(files), 4 * spark.sparkContext.defaultParallelism)
    found = spark.sparkContext.parallelize(files, slices).map(functools.partial(check_file, store)).collect()
    return {file: faults[0] for file, faults in zip(files, found, strict=True) if faults}
