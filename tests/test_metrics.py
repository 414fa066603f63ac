"""Histograms, merged samples, the snapshot for JSON, and the rules of all definitions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.semconv._incubating.metrics import messaging_metrics
from opentelemetry.semconv.attributes import error_attributes, server_attributes

from aiokwire import metrics
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import DeliveryFailed, RetriableError
from aiokwire.metrics import Distribution, Histogram, Metric, Sample, as_dict, merged, type_of
from tests.metrics_page import ALL

COUNT = Metric("kafka.things", "counter", "{thing}", "Things.", ("kafka.node.id",))
TIME = Metric("kafka.time", "histogram", "s", "Time.")


def test_a_histogram_counts_each_value_in_the_bucket_whose_bound_it_does_not_exceed() -> None:
    histogram = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe(value)
    read = histogram.read()
    assert (read.bounds, read.counts) == ((0.1, 1.0), (2, 1, 1))
    assert read.sum == pytest.approx(7.65)
    assert read.count == 4
    assert list(read.cumulative()) == [(0.1, 2), (1.0, 3), (float("inf"), 4)]


def test_a_reading_does_not_change_with_later_values() -> None:
    histogram = Histogram((1.0,))
    read = histogram.read()
    histogram.observe(0.5)
    assert read.count == 0
    assert histogram.read().count == 1


def test_samples_with_the_same_labels_are_added_up() -> None:
    histogram = Histogram((1.0,))
    histogram.observe(0.5)
    once = [COUNT.sample(3, {"a": "b"}, "1"), COUNT.sample(4, {"a": "b"}, "2"), TIME.sample(histogram.read(), {})]
    assert merged(once) == once
    assert [sample.value for sample in merged(once + once)] == [6, 8, Distribution((1.0,), (2, 0), 1.0)]


def test_samples_of_one_metric_are_neighbours_after_merging() -> None:
    mixed = [COUNT.sample(1, {}, "1"), TIME.sample(Histogram().read(), {}), COUNT.sample(1, {}, "2")]
    assert [sample.metric for sample in merged(mixed)] == [COUNT, COUNT, TIME]


def test_a_snapshot_can_be_written_as_json() -> None:
    histogram = Histogram((0.5,))
    histogram.observe(2.0)
    snapshot = as_dict([COUNT.sample(3, {}, "1"), Sample(TIME, {}, histogram.read())])
    assert json.loads(json.dumps(snapshot)) == {
        "kafka.things": [{"labels": {"kafka.node.id": "1"}, "value": 3}],
        "kafka.time": [{"labels": {}, "value": {"count": 1, "sum": 2.0, "buckets": {"0.5": 0, "+Inf": 1}}}],
    }


def test_the_type_of_an_error_is_the_code_of_the_broker_or_the_name_of_the_class() -> None:
    assert type_of(RetriableError("x", code=ErrorCode.NOT_ENOUGH_REPLICAS)) == "NOT_ENOUGH_REPLICAS"
    assert type_of(DeliveryFailed("x", topic="t", partition=0, stage="buffered", elapsed=1.0)) == "DeliveryFailed"


# --- definitions ------------------------------------------------------------------------------------------------------


def test_every_name_is_defined_once_and_well_formed() -> None:
    names = [metric.name for metric in ALL]
    assert len(set(names)) == len(names)
    for metric in ALL:
        assert re.fullmatch(r"(messaging|kafka)(\.[a-z0-9_]+)+", metric.name), metric.name
        assert metric.kind in {"counter", "gauge", "histogram"}
        assert metric.unit in {"s", "By", "1"} or re.fullmatch(r"\{[a-z_]+\}", metric.unit), metric.name
        assert metric.description.endswith("."), metric.name


class Recorder:
    """A meter that keeps the kind, name and unit of the instrument that is created."""

    def __init__(self) -> None:
        self.created: tuple[str, str, str] | None = None

    def __getattr__(self, method: str) -> Callable[..., None]:
        def create(name: str, unit: str, **_: object) -> None:
            self.created = (method.removeprefix("create_"), name, unit)

        return create


def test_the_metrics_of_opentelemetry_have_its_names_kinds_and_units() -> None:
    ours = [metric for metric in ALL if metric.name.startswith("messaging.")]
    assert {metric.name for metric in ours} >= {"messaging.client.sent.messages", "messaging.client.consumed.messages"}
    for metric in ours:
        recorder = Recorder()
        getattr(messaging_metrics, f"create_{metric.name.replace('.', '_')}")(recorder)
        assert recorder.created == (metric.kind, metric.name, metric.unit)
        assert {metrics.SYSTEM, metrics.OPERATION} <= set(metric.labels), "which the convention requires"


def test_the_attributes_of_opentelemetry_have_its_names() -> None:
    known = {
        value
        for module in (messaging_attributes, error_attributes, server_attributes)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    used = {label for metric in ALL for label in metric.labels} | {metrics.CLIENT_ID, metrics.GROUP}
    assert {label for label in used if not label.startswith("kafka.")} <= known
    systems = {member.value for member in messaging_attributes.MessagingSystemValues}
    assert metrics.KAFKA in systems
