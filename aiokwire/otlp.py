"""Metrics in OpenTelemetry's protobuf: what clients push to brokers (KIP-714), and its decoding.

Needs the package `opentelemetry-proto` of the extra `telemetry`, which loads when it is first used.
What a client pushed is bounded, and checked: brokers export it to Prometheus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from aiokwire.errors import ConfigurationError, CorruptRecord
from aiokwire.metrics import Distribution, Kind, Metric, Sample

NANOS: Final = 1_000_000_000

# Bounds of what is decoded.
MAX_POINTS: Final = 2_000  # of one push
MAX_LABELS: Final = 16  # of one point, those of its resource included
MAX_BUCKETS: Final = 200
MAX_TEXT: Final = 250  # characters of a label's value
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,199}")
LABEL: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
BUCKET: Final = "le"  # Prometheus' label of the buckets of a histogram


class Period(NamedTuple):
    """When the values were counted, in nanoseconds since the epoch."""

    start: int
    end: int


class Pushed(NamedTuple):
    """One decoded value. `is_delta`: it was counted since the push before."""

    sample: Sample
    is_delta: bool


def check_installed() -> None:
    """Import the package.

    Raises: ConfigurationError: it is not installed, with advice.
    """
    _messages()


def _messages() -> Any:
    try:
        from opentelemetry.proto.metrics.v1 import metrics_pb2
    except ImportError:
        raise ConfigurationError(
            "metrics in OpenTelemetry's format need opentelemetry-proto: pip install 'aiokwire[telemetry]'"
        ) from None
    return metrics_pb2


def encode(samples: Iterable[Sample], resource: Mapping[str, str], period: Period, *, is_delta: bool) -> bytes:
    """Return samples as `MetricsData`. `is_delta`: counters and histograms count since the start
    of the period.

    Raises: ConfigurationError: the package is not installed.
    """
    pb = _messages()
    temporality = pb.AGGREGATION_TEMPORALITY_DELTA if is_delta else pb.AGGREGATION_TEMPORALITY_CUMULATIVE
    data = pb.MetricsData()
    of_resource = data.resource_metrics.add()
    _set_attributes(of_resource.resource, resource)
    scope = of_resource.scope_metrics.add()
    known: dict[str, Any] = {}
    for sample in samples:
        metric = known.get(sample.metric.name)
        if metric is None:
            metric = known[sample.metric.name] = scope.metrics.add(name=sample.metric.name, unit=sample.metric.unit)
        _set_attributes(_add_point(metric, sample, period, temporality), sample.labels)
    result: bytes = data.SerializeToString()
    return result


def _set_attributes(target: Any, labels: Mapping[str, str]) -> None:
    for name, value in labels.items():
        target.attributes.add(key=name).value.string_value = value


def _add_point(metric: Any, sample: Sample, period: Period, temporality: int) -> Any:
    times = {"start_time_unix_nano": period.start, "time_unix_nano": period.end}
    value = sample.value
    if isinstance(value, Distribution):
        metric.histogram.aggregation_temporality = temporality
        return metric.histogram.data_points.add(
            **times, count=value.count, sum=value.sum, bucket_counts=value.counts, explicit_bounds=value.bounds
        )
    if sample.metric.kind == "gauge":
        return metric.gauge.data_points.add(time_unix_nano=period.end, as_double=float(value))
    metric.sum.is_monotonic = True
    metric.sum.aggregation_temporality = temporality
    return metric.sum.data_points.add(**times, as_double=float(value))


def decode(data: bytes) -> list[Pushed]:
    """Return what a client pushed, at most 2,000 values; those with odd names are left out.

    Raises: CorruptRecord: it is not `MetricsData`; ConfigurationError: as `encode`.
    """
    pb = _messages()
    try:
        parsed = pb.MetricsData.FromString(data)
    except Exception as error:  # DecodeError, which each implementation of protobuf defines
        raise CorruptRecord(f"the metrics are not OpenTelemetry's MetricsData: {error}") from None
    found: list[Pushed] = []
    for pushed in _values(parsed, pb.AGGREGATION_TEMPORALITY_DELTA):
        found.append(pushed)
        if len(found) == MAX_POINTS:
            break
    return found


def _values(parsed: Any, delta: int) -> Iterator[Pushed]:
    for of_resource in parsed.resource_metrics:
        resource = _labels(of_resource.resource.attributes)
        for scope in of_resource.scope_metrics:
            for metric in scope.metrics:
                if NAME.fullmatch(metric.name):
                    yield from _values_of(metric, resource, delta)


def _values_of(metric: Any, resource: dict[str, str], delta: int) -> Iterator[Pushed]:
    which = metric.WhichOneof("data")
    if which not in ("gauge", "sum", "histogram"):
        return
    data = getattr(metric, which)
    kind: Kind = "counter" if which == "sum" and data.is_monotonic else "gauge" if which != "histogram" else "histogram"
    description = Metric(metric.name, kind, "1", "Pushed by clients.")
    is_delta = which != "gauge" and data.aggregation_temporality == delta
    for point in data.data_points:
        value = _distribution(point) if which == "histogram" else _number(point)
        if value is not None:
            labels = {**resource, **_labels(point.attributes)}
            yield Pushed(Sample(description, dict(list(labels.items())[:MAX_LABELS]), value), is_delta)


def _number(point: Any) -> float | None:
    which = point.WhichOneof("value")
    return None if which is None else float(getattr(point, which))


def _distribution(point: Any) -> Distribution | None:
    bounds, counts = tuple(point.explicit_bounds), tuple(point.bucket_counts)
    is_sound = len(counts) == len(bounds) + 1 <= MAX_BUCKETS and list(bounds) == sorted(bounds)
    return Distribution(bounds, counts, point.sum) if is_sound else None


def _labels(attributes: Iterable[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for attribute in attributes:
        which, name = attribute.value.WhichOneof("value"), attribute.key.replace(".", "_")
        if len(found) < MAX_LABELS and which in _PLAIN and LABEL.fullmatch(name) and name != BUCKET:
            found[name] = str(getattr(attribute.value, which))[:MAX_TEXT]
    return found


_PLAIN: Final = ("string_value", "int_value", "bool_value", "double_value")
