"""The collector, read back by the parser of `prometheus_client`."""

from __future__ import annotations

import math

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from aiokwire.admin import Admin
from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.producer import Producer
from aiokwire.telemetry import KafkaCollector, Measured
from aiokwire.threads import run_in_thread
from tests import metrics_page
from tests.consumer.groups import QUICK

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(*clients: Measured) -> str:
    registry = CollectorRegistry()
    registry.register(KafkaCollector(*clients))
    return generate_latest(registry).decode()


def series_of(text: str) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset((name, value) for name, value in sample.labels.items() if value))
            assert key not in found, "each series is there once"
            found[key] = sample.value
    return found


def value(series: Series, name: str, **labels: str) -> float:
    found = [number for (of, given), number in series.items() if of == name and labels.items() <= dict(given).items()]
    assert found, f"no series {name} with {labels}"
    return sum(found)


async def test_a_scrape_has_the_metrics_of_producer_consumer_admin_client_and_broker() -> None:
    async with (
        Broker(topics={"t": 2}) as broker,
        Producer(broker.bootstrap_servers, client_id="sender") as producer,
        Consumer(
            "t", bootstrap_servers=broker.bootstrap_servers, client_id="reader", group_id="g", **QUICK
        ) as consumer,
        Admin(broker.bootstrap_servers, client_id="admin") as admin,
    ):
        await producer.send_many("t", [b"x"] * 10)
        seen = 0
        while seen < 10:
            seen += len(await consumer.getmany(timeout=5))
        await consumer.commit()
        await admin.list_groups()
        series = series_of(await run_in_thread(scrape, producer, consumer, admin, broker))
        sent = value(series, "messaging_client_sent_messages_total", messaging_client_id="sender")
        assert (
            sent == value(series, "messaging_client_consumed_messages_total", messaging_consumer_group_name="g") == 10
        )
        assert value(series, "kafka_consumer_fetch_manager_records_lag", messaging_destination_name="t") == 0
        assert value(series, "kafka_connection_count", messaging_client_id="admin") == 1
        assert value(series, "kafka_server_topic_count") >= 1
        assert {name for name, _ in series} <= metrics_page.series()


async def test_histograms_have_cumulative_buckets_a_sum_and_a_count() -> None:
    async with Broker(topics={"t": 1}) as broker, Producer(broker.bootstrap_servers) as producer:
        for _ in range(3):
            await producer.send("t", b"x")
        series = series_of(scrape(producer))
        name = "messaging_client_operation_duration_seconds"
        buckets = sorted(
            (float(dict(labels)["le"]), number) for (of, labels), number in series.items() if of == f"{name}_bucket"
        )
        assert buckets[-1] == (math.inf, 3)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        assert value(series, f"{name}_count") == 3
        assert value(series, f"{name}_sum") > 0


async def test_clients_with_one_client_id_are_added_up() -> None:
    async with (
        Broker(topics={"t": 1}) as broker,
        Producer(broker.bootstrap_servers) as one,
        Producer(broker.bootstrap_servers) as other,
    ):
        await one.send("t", b"x")
        await other.send("t", b"x")
        series = series_of(scrape(one, other))
        assert value(series, "messaging_client_sent_messages_total") == 2
        assert value(series, "kafka_connection_creation_total") == 2


async def test_clients_may_be_added_and_removed_while_the_collector_is_registered() -> None:
    registry = CollectorRegistry()
    collector = KafkaCollector()
    registry.register(collector)
    assert series_of(generate_latest(registry).decode()) == {}
    producer = Producer[bytes, bytes]("localhost:9092")
    collector.add(producer)
    collector.add(producer)
    assert value(series_of(generate_latest(registry).decode()), "kafka_producer_buffer_limit_bytes") > 0
    collector.remove(producer)
    assert series_of(generate_latest(registry).decode()) == {}


def test_a_second_collector_of_one_registry_is_refused() -> None:
    registry = CollectorRegistry(auto_describe=True)
    registry.register(KafkaCollector(Producer[bytes, bytes]("localhost:9092")))
    with pytest.raises(ValueError, match="Duplicated timeseries"):
        registry.register(KafkaCollector(Admin("localhost:9092")))


async def test_the_exposition_is_valid_openmetrics() -> None:
    async with Broker(topics={"t": 1}) as broker, Producer(broker.bootstrap_servers) as producer:
        await producer.send("t", b"x")
        registry = CollectorRegistry()
        registry.register(KafkaCollector(producer, broker))
        text = generate_openmetrics(registry).decode()  # type: ignore[no-untyped-call]
        assert len(list(parse_openmetrics(text))) > 20  # type: ignore[no-untyped-call]
