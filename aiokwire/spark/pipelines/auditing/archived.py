"""The archive's side of a comparison: which files count, which offsets they are said to have, and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from aiokwire.spark.pipelines.auditing.against import Comparison, common, find_differences, within
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = "key,value,topic,partition,offset,timestamp,headers"


def compare(
    spark: SparkSession, options: Mapping[str, str], audited: Mapping[TopicPartition, tuple[int, int]], path: Path
) -> Comparison:
    """Compare what the source's options name, of which `audited` has the offsets, with an archive."""
    archive = spark.read.parquet(str(path)).select(*_COLUMNS.split(","))
    ranges = {
        TopicPartition(row.topic, row.partition): (row.first, row.end)
        for row in archive.groupBy("topic", "partition").agg({"offset": "min"}).collect()
    }
    compared = common(audited, ranges)
    topic = spark.read.format("aiokwire").options(**{**options, "columns": _COLUMNS}).load()
    records, found = find_differences(within(topic, compared), within(archive, compared))
    return Comparison(str(path), 0, records, tuple((*tp, *ends) for tp, ends in compared.items()), tuple(found))
