from __future__ import annotations

import datetime

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from aiokwire.spark.source.planning import Range
from aiokwire.spark.source.pushdown import bounds_of

RANGES = [Range("a", 0, 0, 100), Range("a", 1, 50, 60), Range("b", 0, 0, 100)]
OFFSET, TOPIC, PARTITION, TIMESTAMP = ("offset",), ("topic",), ("partition",), ("timestamp",)
NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
NOON_MS = 1_767_268_800_000


def left(*filters: Filter) -> list[Range]:
    """Return the ranges that remain after filters that Spark does not have to repeat."""
    bounds, rest = bounds_of(filters)
    assert rest == []
    return bounds.cut(RANGES)


def test_without_filters_everything_is_read() -> None:
    assert left() == RANGES


def test_topics_and_partitions_are_left_out() -> None:
    assert left(EqualTo(TOPIC, "b")) == [RANGES[2]]
    assert left(In(PARTITION, (1, 7))) == [RANGES[1]]
    assert left(EqualNullSafe(TOPIC, "a"), EqualTo(PARTITION, 0)) == [RANGES[0]]
    assert left(EqualTo(TOPIC, "a"), EqualTo(TOPIC, "b")) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ((GreaterThan(OFFSET, 10), LessThan(OFFSET, 55)), [(11, 55), (50, 55), (11, 55)]),
        ((GreaterThanOrEqual(OFFSET, 10), LessThanOrEqual(OFFSET, 55)), [(10, 56), (50, 56), (10, 56)]),
        ((EqualTo(OFFSET, 50),), [(50, 51)] * 3),
        ((EqualTo(OFFSET, 3), EqualTo(OFFSET, 5)), []),
        ((GreaterThan(OFFSET, 99),), []),
    ],
)
def test_filters_on_offsets_bound_the_read(filters: tuple[Filter, ...], expected: list[tuple[int, int]]) -> None:
    assert [(each.start, each.end) for each in left(*filters)] == expected


def test_several_offsets_are_a_range_that_spark_checks() -> None:
    given = In(OFFSET, (5, 9))
    bounds, rest = bounds_of([given])
    assert rest == [given]
    assert bounds.cut(RANGES[:1]) == [Range("a", 0, 5, 10)]


def test_a_lower_time_bound_moves_the_start_and_spark_filters_the_rest() -> None:
    filters = [GreaterThanOrEqual(TIMESTAMP, NOON), GreaterThan(TIMESTAMP, NOON - datetime.timedelta(days=1))]
    bounds, rest = bounds_of([IsNotNull(TIMESTAMP), *filters])
    assert rest == filters
    assert bounds.since == NOON_MS
    upper = LessThan(TIMESTAMP, NOON)
    bounds, rest = bounds_of([upper])
    assert (bounds.since, rest) == (None, [upper]), "a later record may be earlier than it"


@pytest.mark.parametrize(
    "given",
    [
        Not(EqualTo(PARTITION, 1)),
        EqualNullSafe(TOPIC, None),
        StringStartsWith(TOPIC, "a"),
        LessThan(PARTITION, 1),
        EqualTo(("value", "offset"), 5),
        EqualTo(("value",), b"x"),
        IsNotNull(("value",)),
    ],
)
def test_unusable_filters_are_left_to_spark(given: Filter) -> None:
    bounds, rest = bounds_of([given])
    assert rest == [given]
    assert bounds.cut(RANGES) == RANGES
    assert bounds.since is None
