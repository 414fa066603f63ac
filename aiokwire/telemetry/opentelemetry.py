"""Metrics for OpenTelemetry: instruments of a meter provider that read the clients.

Needs `opentelemetry-api`; the program configures the SDK, its readers and exporters.

OpenTelemetry has no observable histogram. Each collection therefore records the values since the
last one individually, each in its bucket and with the right sum: the counts of the buckets are
exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from opentelemetry.metrics import CallbackOptions, Histogram, Meter, MeterProvider, Observation

from aiokwire._version import __version__
from aiokwire.metrics import Distribution, Labels, Metric, Sample
from aiokwire.telemetry.clients import Clients, Measured

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.38.0"

Key = tuple[str, tuple[tuple[str, str], ...]]  # a metric's name, and the labels of a sample


def observe(meter_provider: MeterProvider, *clients: Measured) -> Instruments:
    """Export the metrics of clients through a meter provider, at each collection of its readers.

    Returns the instruments, to add and remove clients of the same kinds later. A provider needs
    only one.
    """
    return Instruments(meter_provider.get_meter("aiokwire", __version__, SCHEMA_URL), *clients)


class Instruments(Clients):
    """One instrument for each metric that the clients may have. Create it by `observe`.

    Readers call it from their threads; the SDK lets one collect at a time.
    """

    def __init__(self, meter: Meter, *clients: Measured) -> None:
        super().__init__(*clients)
        self._meter = meter
        self._histograms: dict[str, Histogram] = {}
        self._recorded: dict[Key, Distribution] = {}
        self._snapshot: dict[str, list[Sample]] = {}  # by the metric's name
        self._served: set[str] = set()  # the metrics that the snapshot was read for
        self._known: set[str] = set()
        self._create()

    def add(self, client: Measured) -> None:
        """Also export the metrics of another client."""
        super().add(client)
        self._create()

    def _create(self) -> None:
        for metric in self.definitions():
            if metric.name not in self._known:
                self._known.add(metric.name)
                self._create_one(metric)

    def _create_one(self, metric: Metric) -> None:
        name, unit, text = metric.name, metric.unit, metric.description
        if metric.kind == "histogram":
            self._histograms[name] = self._meter.create_histogram(
                name, unit, text, explicit_bucket_boundaries_advisory=metric.bounds
            )
        elif metric.kind == "counter":
            self._meter.create_observable_counter(name, [self._reader_of(name)], unit, text)
        else:
            self._meter.create_observable_gauge(name, [self._reader_of(name)], unit, text)

    def _reader_of(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def read(_options: CallbackOptions) -> list[Observation]:
            return [Observation(_number(one), dict(one.labels)) for one in self._read(name)]

        return read

    def _read(self, name: str) -> list[Sample]:
        """Return the samples of a metric from the snapshot of this collection: a metric that is
        read again begins the next one."""
        if name in self._served or not self._served:
            self._served.clear()
            self._take_snapshot()
        self._served.add(name)
        return self._snapshot.get(name, [])

    def _take_snapshot(self) -> None:
        self._snapshot = {}
        for sample in self.samples():
            self._snapshot.setdefault(sample.metric.name, []).append(sample)
            if isinstance(sample.value, Distribution):
                self._record(sample.metric.name, sample.labels, sample.value)

    def _record(self, name: str, labels: Labels, now: Distribution) -> None:
        """Record the values that a histogram has counted since the last collection."""
        key = (name, tuple(sorted(labels.items())))
        before = self._recorded.get(key)
        self._recorded[key] = now
        attributes: dict[str, Any] = dict(labels)
        for value, count in values_between(before, now):
            for _ in range(count):
                self._histograms[name].record(value, attributes)


def _number(sample: Sample) -> int | float:
    assert not isinstance(sample.value, Distribution)
    return sample.value


def values_between(before: Distribution | None, now: Distribution) -> list[tuple[float, int]]:
    """Return values with their counts that turn the counts of `before` into those of `now`.

    Each lies in its bucket, and their sum is close to the real one. A client whose counts restart
    at zero begins a new histogram.
    """
    counts: Sequence[int] = now.counts
    rest = now.sum
    if before is not None and all(map(int.__ge__, now.counts, before.counts)):
        counts = [one - other for one, other in zip(now.counts, before.counts, strict=True)]
        rest = now.sum - before.sum
    lower = (0.0, *now.bounds)
    upper = (*now.bounds, max(2 * now.bounds[-1], rest))
    least = sum(low * count for low, count in zip(lower, counts, strict=True))
    width = sum((high - low) * count for low, high, count in zip(lower, upper, counts, strict=True))
    part = min(1.0, max(1e-6, (rest - least) / width)) if width else 1.0
    return [
        (min(high, low + (high - low) * part), count)
        for low, high, count in zip(lower, upper, counts, strict=True)
        if count
    ]
