"""What is pushed: standard metrics from two readings, and differences since the last push."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.cluster.pushed_metrics import Ledger, counted_between, is_requested
from aiokwire.metrics import Histogram, Metric, Sample

CREATION = Metric("kafka.connection.creation", "counter", "{connection}", "")
LATENCY = Metric("kafka.node.request.latency", "histogram", "s", "", ("kafka.request", "kafka.node.id"))
THROTTLE = Metric("kafka.node.request.throttle.time", "counter", "s", "", ("kafka.request", "kafka.node.id"))
P = "org.apache.kafka.producer."


@given(before=st.lists(st.floats(0, 300), max_size=20), now=st.lists(st.floats(0, 300), max_size=20))
def test_the_maximum_is_in_the_bucket_of_the_largest_value(before: list[float], now: list[float]) -> None:
    histogram = Histogram()
    for value in before:
        histogram.observe(value)
    first = histogram.read()
    for value in now:
        histogram.observe(value)
    found = counted_between(first, histogram.read())
    assert found.values == len(now)
    assert found.total == pytest.approx(sum(now))
    if now:
        assert found.largest >= max(now) * (1 - 1e-6) - 1e-6
        upper = next((bound for bound in histogram.bounds if bound >= max(now)), sum(now))
        assert found.largest <= max(upper, *now) * (1 + 1e-6) + 1e-6


def latency(*values: float, request: str = "Produce", node: str = "1") -> Sample:
    histogram = LATENCY.new_histogram()
    for value in values:
        histogram.observe(value)
    return LATENCY.sample(histogram.read(), {"messaging.client.id": "me"}, request, node)


def pushed(ledger: Ledger, *samples: Sample, seconds: float = 10, is_delta: bool = True) -> dict[str, object]:
    push = ledger.collect(samples, ["*"], seconds, is_delta=is_delta)
    ledger.accepted(push)
    return {one.metric.name: one.value for one in push.values}


def test_averages_and_rates_are_those_since_the_last_push() -> None:
    ledger = Ledger("producer")
    pushed(ledger, CREATION.sample(2, {}), latency(0.2), THROTTLE.sample(1.0, {}, "Produce", "1"))
    found = pushed(ledger, CREATION.sample(7, {}), latency(0.2, 0.004), THROTTLE.sample(1.5, {}, "Produce", "1"))
    assert found[P + "connection.creation.rate"] == 0.5
    assert found[P + "connection.creation.total"] == 5, "a difference"
    assert found[P + "node.request.latency.avg"] == pytest.approx(4)
    assert found[P + "node.request.latency.max"] == pytest.approx(4)
    assert found[P + "produce.throttle.time.avg"] == pytest.approx(500)


def test_a_push_that_was_not_accepted_is_contained_in_the_next() -> None:
    ledger = Ledger("admin")
    ledger.collect([CREATION.sample(2, {})], ["*"], 10, is_delta=True)
    assert pushed(ledger, CREATION.sample(3, {}))["aiokwire.kafka.connection.creation"] == 3
    assert pushed(ledger, CREATION.sample(3, {}))["aiokwire.kafka.connection.creation"] == 0


def test_with_cumulative_temporality_the_totals_are_pushed() -> None:
    ledger = Ledger("admin")
    for total in (2, 5):
        found = pushed(ledger, CREATION.sample(total, {}), is_delta=False)
        assert found["aiokwire.kafka.connection.creation"] == total
        assert found["org.apache.kafka.admin.client.connection.creation.total"] == total


def test_metrics_of_partitions_and_labels_of_the_client_are_left_out() -> None:
    lag = Metric("kafka.lag", "gauge", "1", "", ("messaging.destination.partition.id",))
    own = {"messaging.client.id": "me", "messaging.consumer.group.name": "g"}
    push = Ledger("consumer").collect([lag.sample(1, own, "0"), CREATION.sample(1, own)], ["*"], 1, is_delta=True)
    assert {one.metric.name for one in push.values} & {"aiokwire.kafka.lag"} == set()
    assert all(not one.labels for one in push.values)


@pytest.mark.parametrize(
    ("requested", "expected"),
    [(["*"], True), ([""], True), (["org.apache"], True), (["org.apache.kafka.consumer"], False), ([], False)],
)
def test_a_subscription_selects_by_prefixes(requested: list[str], expected: bool) -> None:
    assert is_requested("org.apache.kafka.producer.x", requested) is expected
