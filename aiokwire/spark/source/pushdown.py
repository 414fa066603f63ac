"""Filter pushdown: bounds on topics, partitions, offsets and time. No I/O."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from typing import Any

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
)

from aiokwire.spark.source.batch import BatchReader
from aiokwire.spark.source.planning import Bounds

_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})


class PushdownReader(BatchReader):
    """A batch reader that receives the query's filters, where Spark's own option allows it."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Receive the filters before `partitions`; return those that Spark has to apply itself."""
        self._bounds, left = bounds_of(filters)
        return left


def bounds_of(filters: Iterable[Filter]) -> tuple[Bounds, list[Filter]]:
    """Return the bounds of a conjunction of filters, and the filters that Spark has to apply."""
    bounds = Bounds()
    return bounds, [each for each in filters if not _take(bounds, each)]


def _values(given: Filter) -> frozenset[Any] | None:
    """Return the values that a filter enumerates, None for other filters."""
    if isinstance(given, (EqualTo, EqualNullSafe)):
        return None if given.value is None else frozenset({given.value})
    if isinstance(given, In):
        return frozenset(value for value in given.value if value is not None)
    return None


def _meet(before: frozenset[Any] | None, values: frozenset[Any]) -> frozenset[Any]:
    return values if before is None else before & values


def _take(bounds: Bounds, given: Filter) -> bool:
    """Narrow the bounds by one filter; return whether they express it exactly."""
    column: tuple[str, ...] = getattr(given, "attribute", ())
    if len(column) != 1:
        return False
    name = column[0]
    if isinstance(given, IsNotNull):
        return name in _NEVER_NULL
    values = _values(given)
    if name == "topic" and values is not None:
        bounds.topics = _meet(bounds.topics, values)
        return True
    if name == "partition" and values is not None:
        bounds.partitions = _meet(bounds.partitions, values)
        return True
    if name == "offset":
        return _take_offset(bounds, given, values)
    if name == "timestamp":
        _take_time(bounds, given)
    return False


def _take_offset(bounds: Bounds, given: Filter, values: frozenset[Any] | None) -> bool:
    if values is not None:
        if not values:
            bounds.end = 0
        else:
            bounds.first = max(bounds.first, min(values))
            bounds.end_at(max(values) + 1)
        return len(values) == 1
    value: Any = getattr(given, "value", None)
    if not isinstance(value, int):
        return False
    if isinstance(given, (GreaterThan, GreaterThanOrEqual)):
        bounds.first = max(bounds.first, value + isinstance(given, GreaterThan))
    elif isinstance(given, (LessThan, LessThanOrEqual)):
        bounds.end_at(value + isinstance(given, LessThanOrEqual))
    else:
        return False
    return True


def _take_time(bounds: Bounds, given: Filter) -> None:
    value: Any = getattr(given, "value", None)
    if isinstance(given, (EqualTo, GreaterThan, GreaterThanOrEqual)) and isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            return
        since = math.floor(value.timestamp() * 1000)
        bounds.since = since if bounds.since is None else max(bounds.since, since)
