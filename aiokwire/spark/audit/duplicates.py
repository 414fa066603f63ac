"""Duplicate records, found by Spark: equal by key and value, by value, by key, or by a header.

Records count as equal if 128 bits of hashes of these columns are equal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aiokwire.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# The duplicates that are named; all are counted.
SHOWN: Final = 20

_HEADER: Final = re.compile(r"header:(.+)")
_COLUMNS: Final = {"key,value": ("key", "value"), "value": ("value",), "key": ("key",)}


@dataclass(frozen=True)
class Repeated:
    """Equal records in one topic."""

    topic: str
    times: int
    first: tuple[int, int]
    last: tuple[int, int]
    """Partition and offset."""

    def __str__(self) -> str:
        return "first in partition {} at {}, last in {} at {}".format(*self.first, *self.last)


@dataclass(frozen=True)
class Duplicates:
    """The duplicates in topics."""

    by: str
    records: int
    """The count of compared records: for a header, those that have it."""
    extra: int
    """The count of records that repeat an earlier one."""
    distinct: int
    """The count of distinct records that are repeated."""
    by_topic: dict[str, int]
    """`extra` of each topic that has duplicates."""
    shown: tuple[Repeated, ...]
    """The most frequent ones."""


def parse_identity(text: str) -> tuple[tuple[str, ...], str | None]:
    """Parse the identity of a record: columns, or a header's name.

    Raises: ConfigurationError: it is none of `key,value`, `key`, `value`, `header:NAME`.
    """
    columns = _COLUMNS.get(text.replace(" ", ""))
    if columns is not None:
        return columns, None
    header = _HEADER.fullmatch(text)
    if header is None:
        raise ConfigurationError(f"duplicates must be key,value or key or value or header:NAME, not {text!r}")
    return ("headers",), header[1]


def source_options(options: Mapping[str, str], by: str) -> dict[str, str]:
    """Return the source's options to read the compared columns with read_committed."""
    columns, header = parse_identity(by)
    found = {name: text for name, text in options.items() if name.lower() not in ("columns", "includeheaders")}
    return found | {
        "columns": ",".join([*columns, "topic", "partition", "offset"]),
        "includeHeaders": str(header is not None).lower(),
        "kafka.isolation.level": "read_committed",
    }


def find_duplicates(spark: SparkSession, options: Mapping[str, str], topics: Sequence[str], by: str) -> Duplicates:
    """Read topics and find the duplicates in each of them; `options` have fixed offsets."""
    rows = spark.read.format("aiokwire").options(**source_options(options, by)).load()
    return count_repeated(rows, topics, by)


def count_repeated(rows: DataFrame, topics: Sequence[str], by: str) -> Duplicates:
    """Find the duplicates among rows."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    columns, header = parse_identity(by)
    compared = [F.col(name) for name in columns] if header is None else [_header(header)]
    # Hashes ignore nulls: the flags distinguish a null key from a null value.
    parts = [part for column in compared for part in (column.isNull(), column)]
    groups = (
        (rows if header is None else rows.where(compared[0].isNotNull()))
        .select(
            "topic",
            F.xxhash64(*parts).alias("one"),
            F.xxhash64(F.lit(1), *parts).alias("two"),
            F.struct("partition", "offset").alias("place"),
        )
        .groupBy("topic", "one", "two")
        .agg(F.count(F.lit(1)).alias("times"), F.min("place").alias("first"), F.max("place").alias("last"))
    )
    times, extra = F.col("times"), F.col("times") - 1
    totals = Observation()
    shown = (
        groups.observe(
            totals,
            F.sum(times).alias("records"),
            F.count_if(times > 1).alias("distinct"),
            *(F.sum(F.when(F.col("topic") == topic, extra)).alias(f"topic {at}") for at, topic in enumerate(topics)),
        )
        .where(times > 1)
        .orderBy(F.desc("times"), "topic", "first")
        .limit(SHOWN)
        .collect()
    )
    by_topic = {topic: totals.get[f"topic {at}"] or 0 for at, topic in enumerate(topics)}
    return Duplicates(
        by,
        totals.get["records"] or 0,
        sum(by_topic.values()),
        totals.get["distinct"] or 0,
        {topic: count for topic, count in by_topic.items() if count},
        tuple(Repeated(row.topic, row.times, tuple(row["first"]), tuple(row["last"])) for row in shown),
    )


def _header(name: str) -> Column:
    from pyspark.sql import functions as F

    with_name: Any = F.filter("headers", lambda header: header["key"] == F.lit(name))
    first: Column = F.get(with_name, F.lit(0))["value"]
    return first
