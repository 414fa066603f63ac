"""Metrics as plain data: what is measured, its values now, and the counts of a histogram.

No registry, no thread, no lock. Each part counts in its own slots where the work happens, and
`metrics()` of a client reads them. Names and attributes follow OpenTelemetry's conventions for
messaging where they exist, and otherwise the metrics of Kafka's clients as KIP-714 spells them,
without its prefix `org.apache.`.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from aiokwire.errors import BrokerError

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Labels: TypeAlias = Mapping[str, str]

# Attributes of OpenTelemetry.
CLIENT_ID: Final = "messaging.client.id"
DESTINATION: Final = "messaging.destination.name"
ERROR_TYPE: Final = "error.type"
GROUP: Final = "messaging.consumer.group.name"
OPERATION: Final = "messaging.operation.name"
PARTITION: Final = "messaging.destination.partition.id"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
SYSTEM: Final = "messaging.system"
# Attributes without a convention.
NODE: Final = "kafka.node.id"
REQUEST: Final = "kafka.request"

KAFKA: Final = "kafka"  # the value of `SYSTEM`

# Upper bounds of buckets, in seconds: for requests, and for what may take minutes.
SHORT: Final = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0,
)  # fmt: skip
LONG: Final = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Distribution:
    """The counts of a histogram at one moment."""

    bounds: tuple[float, ...]
    """The upper bound of each bucket but the last, inclusive."""
    counts: tuple[int, ...]
    """The values in each bucket; the last has those above all bounds."""
    sum: float
    """Of all values."""

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.counts)

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Yield each upper bound, the last infinite, and the number of values up to it."""
        return zip((*self.bounds, float("inf")), accumulate(self.counts), strict=True)

    def plus(self, other: Distribution) -> Distribution:
        """Return the sum of two distributions with the same bounds."""
        counts = tuple(map(int.__add__, self.counts, other.counts))
        return Distribution(self.bounds, counts, self.sum + other.sum)


Value: TypeAlias = int | float | Distribution


class Metric(NamedTuple):
    """A measured quantity: name, kind, unit, description and labels."""

    name: str
    kind: Kind
    unit: str
    """In UCUM: `s`, `By`, `1`, or what is counted, in braces."""
    description: str
    labels: tuple[str, ...] = ()
    """The attributes of its samples, in addition to those of the client."""
    bounds: tuple[float, ...] = SHORT
    """Of a histogram: the upper bounds of its buckets."""

    def new_histogram(self) -> Histogram:
        """Return a histogram with these buckets."""
        return Histogram(self.bounds)

    def sample(self, value: Value, labels: Labels, *own: str) -> Sample:
        """Return a sample with the client's labels and the values of `self.labels`, in order."""
        return Sample(self, {**labels, **dict(zip(self.labels, own, strict=False))}, value)


DURATION: Final = Metric(
    "messaging.client.operation.duration",
    "histogram",
    "s",
    "`send`: time from the first record of a batch to its acknowledgement. `commit`: of offsets, with its retries.",
    (SYSTEM, OPERATION, ERROR_TYPE),
)


class Sample(NamedTuple):
    """A value of a metric at one moment."""

    metric: Metric
    labels: Labels
    value: Value


class Histogram:
    """Counts values by fixed buckets. One loop writes it; any thread may read it."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = SHORT) -> None:
        self.bounds: tuple[float, ...] = bounds
        self.counts: list[int] = [0] * (len(bounds) + 1)
        self.total: float = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def read(self) -> Distribution:
        """Return the counts now."""
        return Distribution(self.bounds, tuple(self.counts), self.total)


def type_of(error: Exception) -> str:
    """Return the value of `error.type`: the name of a broker's error code, or of the class."""
    return error.code.name if isinstance(error, BrokerError) else type(error).__name__


def merged(samples: Iterable[Sample]) -> list[Sample]:
    """Return the samples, those with the same metric and labels added up, by metric.

    Two clients with one `client_id` have such samples; exporters need each only once.
    """
    found: dict[str, dict[tuple[tuple[str, str], ...], Sample]] = {}
    for sample in samples:
        same = found.setdefault(sample.metric.name, {})
        key = tuple(sorted(sample.labels.items()))
        before = same.get(key)
        same[key] = sample if before is None else sample._replace(value=_added(before.value, sample.value))
    return [sample for same in found.values() for sample in same.values()]


def _added(one: Value, other: Value) -> Value:
    if isinstance(one, Distribution) and isinstance(other, Distribution):
        return one.plus(other)
    assert not isinstance(one, Distribution)
    assert not isinstance(other, Distribution)
    return one + other


def as_dict(samples: Iterable[Sample]) -> dict[str, list[dict[str, Any]]]:
    """Return samples as values for JSON: by the metric's name, a list of labels and values.

    The value of a histogram is `{"count": ..., "sum": ..., "buckets": {upper bound: count}}`, with
    the number of values up to each bound.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for metric, labels, value in merged(samples):
        found.setdefault(metric.name, []).append({"labels": dict(labels), "value": _plain(value)})
    return found


def _plain(value: Value) -> Any:
    if not isinstance(value, Distribution):
        return value
    buckets = {"+Inf" if bound == float("inf") else str(bound): count for bound, count in value.cumulative()}
    return {"count": value.count, "sum": value.sum, "buckets": buckets}
