"""Metrics for Prometheus, through `prometheus_client`: a collector, which reads at each scrape.

Names follow the usual translation: dots become underscores, the unit is appended, counters end in
`_total`. `kafka.producer.byte` is `kafka_producer_bytes_total`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from aiokwire.metrics import Distribution, Metric, Sample
from aiokwire.telemetry.clients import Clients, Measured

UNITS: Final = {"s": "seconds", "By": "bytes"}


class KafkaCollector(Clients, Collector):
    """Collects the metrics of clients: `REGISTRY.register(KafkaCollector(producer, consumer))`.

    It starts no thread and sends no request. Clients may be added and removed later; a second
    collector in one registry raises, because each metric may have only one.
    """

    def __init__(self, *clients: Measured) -> None:
        super().__init__(*clients)

    def collect(self) -> list[Family]:
        """Return the metrics now."""
        return families(self.samples())

    def describe(self) -> list[Family]:
        """Return the metrics without values, for the registry."""
        return [_family(metric, []) for metric in self.definitions()]


def families(samples: Iterable[Sample]) -> list[Family]:
    """Return merged samples as `prometheus_client`'s metric families."""
    by_metric: dict[str, tuple[Metric, list[Sample]]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric.name, (sample.metric, []))[1].append(sample)
    return [_family(metric, found) for metric, found in by_metric.values()]


def name_of(metric: Metric) -> str:
    """Return the name of a metric in Prometheus, without the suffix `_total` of counters."""
    name = metric.name.replace(".", "_")
    unit = UNITS.get(metric.unit)
    if unit is None or unit in name:
        return name
    return f"{name}s" if name.endswith("_byte") else f"{name}_{unit}"


def label_of(attribute: str) -> str:
    """Return the label of an attribute."""
    return attribute.replace(".", "_")


def _family(metric: Metric, samples: Sequence[Sample]) -> Family:
    attributes = list(dict.fromkeys(attribute for sample in samples for attribute in sample.labels))
    labels = [label_of(attribute) for attribute in attributes]
    values = [([sample.labels.get(attribute, "") for attribute in attributes], sample.value) for sample in samples]
    name, text = name_of(metric), metric.description
    if metric.kind == "histogram":
        return _histogram(HistogramMetricFamily(name, text, labels=labels), values)
    family = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(name, text, labels=labels)
    for given, value in values:
        assert not isinstance(value, Distribution)
        family.add_metric(given, value)
    return family


def _histogram(
    family: HistogramMetricFamily, values: Iterable[tuple[list[str], int | float | Distribution]]
) -> HistogramMetricFamily:
    for given, value in values:
        assert isinstance(value, Distribution)
        buckets = [("+Inf" if bound == float("inf") else str(bound), count) for bound, count in value.cumulative()]
        family.add_metric(given, buckets, value.sum)
    return family
