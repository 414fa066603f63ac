"""The instruments, read by the in-memory reader of OpenTelemetry's SDK."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Histogram, InMemoryMetricReader, Metric, Sum

from aiokwire.broker import Broker
from aiokwire.metrics import Distribution
from aiokwire.metrics import Histogram as Counts
from aiokwire.producer import Producer
from aiokwire.telemetry import observe
from aiokwire.telemetry.opentelemetry import values_between


def collected(reader: InMemoryMetricReader) -> dict[str, Metric]:
    data = reader.get_metrics_data()
    if data is None:
        return {}
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
    assert {scope.scope.name for scope in scopes} == {"aiokwire"}
    return {metric.name: metric for scope in scopes for metric in scope.metrics}


def points(metrics: dict[str, Metric], name: str) -> list[Any]:
    return list(metrics[name].data.data_points)


async def test_counters_gauges_and_histograms_have_their_kinds_units_and_values() -> None:
    reader = InMemoryMetricReader()
    async with Broker(topics={"t": 1}) as broker, Producer(broker.bootstrap_servers, client_id="me") as producer:
        observe(MeterProvider([reader]), producer)
        for _ in range(4):
            await producer.send("t", b"x")
        found = collected(reader)
        sent = found["messaging.client.sent.messages"]
        assert isinstance(sent.data, Sum)
        assert sent.data.is_monotonic
        assert sent.unit == "{message}"
        (point,) = points(found, sent.name)
        assert point.value == 4
        assert point.attributes["messaging.client.id"] == "me"
        assert point.attributes["messaging.destination.name"] == "t"
        assert points(found, "kafka.producer.buffer.limit")[0].value == producer.config.buffer_memory
        duration = found["messaging.client.operation.duration"]
        assert isinstance(duration.data, Histogram)
        (histogram,) = points(found, duration.name)
        real = next(one.value for one in producer.metrics() if one.metric.name == duration.name)
        assert isinstance(real, Distribution)
        assert tuple(histogram.bucket_counts) == real.counts
        assert tuple(histogram.explicit_bounds) == real.bounds
        assert histogram.sum == pytest.approx(real.sum, abs=1e-6)


async def test_each_collection_adds_what_happened_since_the_last_one() -> None:
    first, second = InMemoryMetricReader(), InMemoryMetricReader()
    async with Broker(topics={"t": 1}) as broker, Producer(broker.bootstrap_servers) as producer:
        observe(MeterProvider([first, second]), producer)
        for number in range(1, 4):
            await producer.send("t", b"x")
            for reader in (first, second):
                found = collected(reader)
                assert points(found, "messaging.client.sent.messages")[0].value == number
                assert points(found, "messaging.client.operation.duration")[0].count == number


async def test_clients_may_be_added_and_removed() -> None:
    reader = InMemoryMetricReader()
    instruments = observe(MeterProvider([reader]))
    producer = Producer[bytes, bytes]("localhost:9092", client_id="late")
    assert collected(reader) == {}
    instruments.add(producer)
    assert points(collected(reader), "kafka.connection.count")[0].attributes["messaging.client.id"] == "late"
    instruments.remove(producer)
    assert "kafka.connection.count" not in collected(reader)


@given(st.lists(st.floats(0.0, 500.0), max_size=30), st.lists(st.floats(0.0, 500.0), max_size=30))
def test_the_values_between_two_readings_fall_into_the_same_buckets(before: list[float], after: list[float]) -> None:
    counts, recorded = Counts(), Counts()
    previous = None
    for values in (before, after):
        for one in values:
            counts.observe(one)
        for one, count in values_between(previous, counts.read()):
            for _ in range(count):
                recorded.observe(one)
        previous = counts.read()
        assert recorded.counts == counts.counts
    assert recorded.total == pytest.approx(counts.total, rel=0.01, abs=0.01)


def test_a_client_that_counts_from_zero_again_begins_again() -> None:
    before, after = Counts((1.0,)), Counts((1.0,))
    before.observe(0.5)
    before.observe(0.5)
    after.observe(0.25)
    assert values_between(before.read(), after.read()) == [(0.25, 1)]
