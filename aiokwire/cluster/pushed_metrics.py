"""The metrics that a client pushes (KIP-714): the standard metrics of Kafka's clients, computed
from two readings of this client's metrics, and those themselves with the prefix `aiokwire.`.

Standard metrics have Java's names and milliseconds. A maximum is the upper bound of the bucket that
the largest value is in. Metrics of single partitions are left out: there may be thousands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from aiokwire.metrics import (
    CLIENT_ID,
    GROUP,
    NODE,
    OPERATION,
    PARTITION,
    REQUEST,
    Distribution,
    Kind,
    Labels,
    Metric,
    Sample,
)

OWN_PREFIX: Final = "aiokwire."
PREFIXES: Final = {
    "producer": "org.apache.kafka.producer.",
    "consumer": "org.apache.kafka.consumer.",
    "admin": "org.apache.kafka.admin.client.",
}
EVERYTHING: Final = ("*", "")  # requested names that select all metrics
NODE_ID: Final = "node_id"
# Labels that every sample of a client has: the broker knows the client, the resource names the group.
_OF_CLIENT: Final = (CLIENT_ID, GROUP)

Key: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


class Readings(NamedTuple):
    """The samples of a client at two moments, and the seconds between these."""

    before: Mapping[Key, Sample]
    now: Mapping[Key, Sample]
    seconds: float

    def of(self, name: str, **labels: str) -> Iterator[tuple[Labels, Sample, Sample | None]]:
        """Yield the samples of a metric with these labels (`REQUEST` and others by attribute)."""
        for key, sample in self.now.items():
            if key[0] == name and all(
                sample.labels.get(one.replace("_", ".")) == value for one, value in labels.items()
            ):
                yield sample.labels, sample, self.before.get(key)


class Counted(NamedTuple):
    """What a histogram or counter has counted between two readings."""

    values: int
    total: float
    largest: float


def index_of(samples: Iterable[Sample]) -> dict[Key, Sample]:
    """Return samples by metric and labels, without those of single partitions and the labels that
    all have."""
    found = {}
    for metric, labels, value in samples:
        if PARTITION not in labels:
            own = {name: text for name, text in labels.items() if name not in _OF_CLIENT}
            found[metric.name, tuple(sorted(own.items()))] = Sample(metric, own, value)
    return found


def counted_between(before: Distribution | None, now: Distribution) -> Counted:
    """Return the counts of a histogram since another reading.

    The maximum is the upper bound of the last bucket with a value, or less if the sum is.
    """
    counts, total = _difference(before, now)
    count = sum(counts)
    if not count:
        return Counted(0, 0.0, 0.0)
    lower = (0.0, *now.bounds)
    last = max(index for index, one in enumerate(counts) if one)
    others = sum(low * one for low, one in zip(lower, counts, strict=True)) - lower[last]
    largest = max(lower[last], total - others)
    return Counted(count, total, largest if last == len(now.bounds) else min(now.bounds[last], largest))


def _difference(before: Distribution | None, now: Distribution) -> tuple[Sequence[int], float]:
    if before is None:
        return now.counts, now.sum
    return [one - other for one, other in zip(now.counts, before.counts, strict=True)], now.sum - before.sum


# --- standard metrics -------------------------------------------------------------------------------------------------


def standard_metrics(kind: str, readings: Readings) -> list[Sample]:
    """Return the standard metrics of a "producer", "consumer" or "admin" client."""
    prefix = PREFIXES[kind]
    return [
        sample._replace(metric=sample.metric._replace(name=prefix + sample.metric.name))
        for compute in (_connections, _latencies, *_OF_KIND[kind])
        for sample in compute(readings)
    ]


def _sample(name: str, value: float, labels: Labels | None = None, kind: Kind = "gauge") -> Sample:
    return Sample(Metric(name, kind, "1", ""), labels or {}, value)


def _connections(readings: Readings) -> Iterator[Sample]:
    for _, now, before in readings.of("kafka.connection.creation"):
        total = _number(now)
        rate = (total - _number(before)) / readings.seconds if readings.seconds else 0.0
        yield _sample("connection.creation.rate", rate)
        yield _sample("connection.creation.total", total, kind="counter")


def _latencies(readings: Readings) -> Iterator[Sample]:
    """Return the latency of all requests of each node."""
    by_node: dict[str, list[Counted]] = {}
    for labels, now, before in readings.of("kafka.node.request.latency"):
        by_node.setdefault(labels.get(NODE, ""), []).append(_counted(now, before))
    for node, found in by_node.items():
        yield from _average_and_max("node.request.latency", found, {NODE_ID: node})


def _throttling(readings: Readings) -> Iterator[Sample]:
    """Return the average throttle time of a Produce request; the longest is not counted."""
    requests = [_counted(now, before) for _, now, before in readings.of(_LATENCY, **{_REQUEST: "Produce"})]
    throttled = [_number(now) - _number(before) for _, now, before in readings.of(_THROTTLE, **{_REQUEST: "Produce"})]
    count = sum(one.values for one in requests)
    yield _sample("produce.throttle.time.avg", 1000 * sum(throttled) / count if count else 0.0)


def _assigned(readings: Readings) -> Iterator[Sample]:
    for _, now, _before in readings.of("kafka.consumer.coordinator.assigned.partitions"):
        yield _sample("coordinator.assigned.partitions", _number(now))


def _rebalances(readings: Readings) -> Iterator[Sample]:
    for _, now, _before in readings.of("kafka.consumer.coordinator.rebalance.latency"):
        assert isinstance(now.value, Distribution)
        yield _sample("coordinator.rebalance.latency.total", 1000 * now.value.sum, kind="counter")


def _timed(source: str, name: str, **labels: str) -> Callable[[Readings], Iterator[Sample]]:
    """Return a function that computes the average and maximum of a histogram."""

    def compute(readings: Readings) -> Iterator[Sample]:
        found = [_counted(now, before) for _, now, before in readings.of(source, **labels)]
        return _average_and_max(name, found) if found else iter(())

    return compute


def _average_and_max(name: str, found: Sequence[Counted], labels: Labels | None = None) -> Iterator[Sample]:
    count = sum(one.values for one in found)
    average = sum(one.total for one in found) / count if count else 0.0
    yield _sample(f"{name}.avg", 1000 * average, labels)
    yield _sample(f"{name}.max", 1000 * max(one.largest for one in found), labels)


def _counted(now: Sample, before: Sample | None) -> Counted:
    assert isinstance(now.value, Distribution)
    earlier = before.value if before is not None and isinstance(before.value, Distribution) else None
    return counted_between(earlier, now.value)


def _number(sample: Sample | None) -> float:
    return 0.0 if sample is None or isinstance(sample.value, Distribution) else float(sample.value)


_LATENCY: Final = "kafka.node.request.latency"
_THROTTLE: Final = "kafka.node.request.throttle.time"
_REQUEST: Final = REQUEST.replace(".", "_")
_COMMITS: Final = {OPERATION.replace(".", "_"): "commit"}
_OF_KIND: Final[Mapping[str, tuple[Callable[[Readings], Iterator[Sample]], ...]]] = {
    "producer": (_throttling, _timed("kafka.producer.record.queue.time", "record.queue.time")),
    "consumer": (
        _assigned,
        _rebalances,
        _timed("messaging.client.operation.duration", "coordinator.commit.latency", **_COMMITS),
        _timed("kafka.consumer.coordinator.rebalance.latency", "coordinator.rebalance.latency"),
        _timed("kafka.consumer.fetch.manager.fetch.latency", "fetch.manager.fetch.latency"),
    ),
    "admin": (),
}


# --- the push ---------------------------------------------------------------------------------------------------------


def is_requested(name: str, requested: Iterable[str]) -> bool:
    """Return whether a subscription selects a metric: by a prefix of its name."""
    return any(one in EVERYTHING or name.startswith(one) for one in requested)


class Ledger:
    """Remembers the values of the last push, from which the next one counts."""

    def __init__(self, kind: str) -> None:
        """`kind`: "producer", "consumer" or "admin"."""
        self._kind = kind
        self._pushed: dict[Key, Sample] = {}
        self._sent: dict[Key, Sample] = {}  # the counters of the last push, as they were computed

    def collect(self, samples: Iterable[Sample], requested: Sequence[str], seconds: float, *, is_delta: bool) -> Push:
        """Return the requested metrics now, `seconds` after the last push that was `accepted`."""
        now = index_of(samples)
        standard = standard_metrics(self._kind, Readings(self._pushed, now, seconds))
        own = (one._replace(metric=one.metric._replace(name=OWN_PREFIX + one.metric.name)) for one in now.values())
        wanted = {
            (one.metric.name, tuple(sorted(one.labels.items()))): one
            for one in (*standard, *own)
            if is_requested(one.metric.name, requested)
        }
        values = [_since(one, self._sent.get(key)) if is_delta else one for key, one in wanted.items()]
        return Push(values, now, wanted)

    def accepted(self, push: Push) -> None:
        """Count from this push on: the broker has it."""
        self._pushed = push.readings
        self._sent = push.totals

    def reset(self) -> None:
        """Count from the start again: the temporality has changed."""
        self._sent = {}


@dataclasses.dataclass(frozen=True, slots=True)
class Push:
    """One push."""

    values: list[Sample]
    readings: dict[Key, Sample]
    totals: dict[Key, Sample]

    def standard(self) -> list[Sample]:
        """Return the values of the standard metrics only."""
        return [one for one in self.values if not one.metric.name.startswith(OWN_PREFIX)]


def _since(now: Sample, before: Sample | None) -> Sample:
    """Return the counts of a counter or histogram since another reading; a gauge unchanged."""
    if before is None or now.metric.kind == "gauge":
        return now
    if isinstance(now.value, Distribution) and isinstance(before.value, Distribution):
        counts, total = _difference(before.value, now.value)
        return now._replace(value=Distribution(now.value.bounds, tuple(counts), total))
    return now._replace(value=_number(now) - _number(before))
