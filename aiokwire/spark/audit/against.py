"""The comparison of a topic with its archive: checksums of blocks, then single offsets that differ.

The checksums are of offset and key, value, headers and timestamp, each separately; they do not
depend on the archive's files or the order of their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The offsets of a checksum.
BLOCK: Final = 8192
# Limits of the search for single offsets; all blocks are compared.
BLOCKS_SEARCHED: Final = 256
OFFSETS_SEARCHED: Final = 20_000
# The differences that are reported.
SHOWN: Final = 200

_PLACE: Final = ("topic", "partition")

NOT_ARCHIVED: Final = "not in the archive"
NOT_IN_TOPIC: Final = "not in the topic"
SEVERAL_TIMES: Final = "in the archive several times"
IN_BLOCK: Final = "somewhere in these offsets"


class Differing(NamedTuple):
    """An offset at which topic and archive differ."""

    topic: str
    partition: int
    offset: int
    kind: str


@dataclass(frozen=True)
class Difference:
    """Consecutive offsets that differ in the same way."""

    topic: str
    partition: int
    kind: str
    first: int
    last: int
    count: int

    def __str__(self) -> str:
        where = f"offset {self.first}" if self.first == self.last else f"offsets {self.first} to {self.last}"
        return f"{where}: {self.kind}"


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison."""

    path: str
    files: int
    records: int
    """Of the archive, in the compared offsets."""
    compared: tuple[tuple[str, int, int, int], ...]
    """Topic, partition, first offset, and end offset (exclusive)."""
    differences: tuple[Difference, ...]


def common(
    topic: Mapping[TopicPartition, tuple[int, int]], archive: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the offsets that both should have, without those deleted or not yet archived."""
    found = {}
    for tp in sorted(topic.keys() & archive.keys()):
        begin, end = max(topic[tp][0], archive[tp][0]), min(topic[tp][1], archive[tp][1])
        if begin < end:
            found[tp] = (begin, end)
    return found


def stretches_of(offsets: Iterable[Differing]) -> list[Difference]:
    """Join consecutive offsets of one kind into a difference."""
    found: list[Difference] = []
    for each in sorted(offsets, key=lambda one: (one.topic, one.partition, one.kind, one.offset)):
        last = found[-1] if found else None
        if last is not None and (last.topic, last.partition, last.kind, last.last + 1) == (
            each.topic, each.partition, each.kind, each.offset
        ):  # fmt: skip
            found[-1] = Difference(last.topic, last.partition, last.kind, last.first, each.offset, last.count + 1)
        else:
            found.append(Difference(each.topic, each.partition, each.kind, each.offset, each.offset, 1))
    return sorted(found, key=lambda one: (one.topic, one.partition, one.first, one.kind))


def within(rows: DataFrame, compared: Mapping[TopicPartition, tuple[int, int]]) -> DataFrame:
    """Filter the rows of these offsets."""
    from pyspark.sql import functions as F

    chosen = F.lit(False)
    for tp, (begin, end) in compared.items():
        of_partition = (F.col("topic") == tp.topic) & (F.col("partition") == tp.partition)
        chosen = chosen | (of_partition & (F.col("offset") >= begin) & (F.col("offset") < end))
    return rows.where(chosen)


def find_differences(topic: DataFrame, archive: DataFrame, parts: Sequence[str]) -> tuple[int, list[Difference]]:
    """Return the count of compared records of the archive, and the differences.

    Both frames have the columns `parts`, which are compared, and topic, partition and offset.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    block = F.floor(F.col("offset") / BLOCK).cast("bigint").alias("block")
    mine = _checksums(_hashed(topic, parts), block, "topic", parts)
    its = _checksums(_hashed(archive, parts), block, "archive", parts)
    totals = Observation()
    differ = (
        mine.join(its, [*_PLACE, "block"], "full_outer")
        .observe(totals, F.sum("archive_count").alias("records"))
        .where(_differ(parts))
        .select(*_PLACE, "block")
        .limit(BLOCKS_SEARCHED + 1)
        .collect()
    )
    records = totals.get["records"] or 0
    if not differ:
        return records, []
    searched = differ[:BLOCKS_SEARCHED]
    found = stretches_of(_one_by_one(topic, archive, searched, parts))[:SHOWN]
    # Beyond the limits of the search, report whole blocks.
    named = {(one.topic, one.partition, at) for one in found for at in range(one.first // BLOCK, one.last // BLOCK + 1)}
    for row in differ:
        if (row.topic, row.partition, row.block) not in named and len(found) < SHOWN:
            first = row.block * BLOCK
            found.append(Difference(row.topic, row.partition, IN_BLOCK, first, first + BLOCK - 1, BLOCK))
    return records, found


def _hashed(rows: DataFrame, parts: Sequence[str]) -> DataFrame:
    """Return each row's offset, and a hash of each part that distinguishes null from empty."""
    from pyspark.sql import functions as F

    hashes = [F.xxhash64("offset", F.col(name).isNull(), F.col(name)).alias(name) for name in parts]
    return rows.select(*_PLACE, "offset", *hashes)


def _checksums(hashed: DataFrame, by: Any, side: str, parts: Sequence[str]) -> DataFrame:
    """Aggregate a count, and the xor of the hashes of each part."""
    from pyspark.sql import functions as F

    sums = [F.bit_xor(name).alias(f"{side}_{name}") for name in parts]
    return hashed.groupBy(*_PLACE, by).agg(F.count(F.lit(1)).alias(f"{side}_count"), *sums)


def _differ(parts: Sequence[str]) -> Any:
    from pyspark.sql import functions as F

    found = F.lit(False)
    for name in ("count", *parts):
        found = found | ~F.col(f"topic_{name}").eqNullSafe(F.col(f"archive_{name}"))
    return found


def _one_by_one(topic: DataFrame, archive: DataFrame, blocks: Sequence[Any], parts: Sequence[str]) -> list[Differing]:
    from pyspark.sql import functions as F

    stretches: dict[TopicPartition, list[int]] = {}
    for row in blocks:
        stretches.setdefault(TopicPartition(row.topic, row.partition), []).append(row.block)
    chosen = F.lit(False)
    for tp, numbers in stretches.items():
        near = (F.col("offset") >= min(numbers) * BLOCK) & (F.col("offset") < (max(numbers) + 1) * BLOCK)
        in_block = F.floor(F.col("offset") / BLOCK).isin(numbers)
        chosen = chosen | ((F.col("topic") == tp.topic) & (F.col("partition") == tp.partition) & near & in_block)
    offset = F.col("offset")
    mine = _checksums(_hashed(topic.where(chosen), parts), offset, "topic", parts)
    its = _checksums(_hashed(archive.where(chosen), parts), offset, "archive", parts)
    rows = mine.join(its, [*_PLACE, "offset"], "full_outer").where(_differ(parts))
    taken = rows.orderBy(*_PLACE, "offset").limit(OFFSETS_SEARCHED).collect()
    return [Differing(row.topic, row.partition, row.offset, kind_of(row.asDict(), parts)) for row in taken]


def kind_of(row: Mapping[str, Any], parts: Sequence[str]) -> str:
    """Describe how an offset differs."""
    if row["archive_count"] is None:
        return NOT_ARCHIVED
    if row["topic_count"] is None:
        return NOT_IN_TOPIC
    if row["archive_count"] > 1:
        return SEVERAL_TIMES
    other = [name for name in parts if row[f"topic_{name}"] != row[f"archive_{name}"]]
    return f"{' and '.join(other)} {'differs' if len(other) == 1 and other != ['headers'] else 'differ'}"
