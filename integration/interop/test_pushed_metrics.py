"""KIP-714 with a peer: Java's clients push to the embedded broker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import anyio
import pytest

import aiokwire
from aiokwire.admin import ConfigResource, ResourceType
from aiokwire.broker import Broker
from aiokwire.metrics import Sample
from integration.conftest import lacking
from integration.kafka import MissingPrerequisite
from integration.kafka.fetch import java, libs

pytest.importorskip("opentelemetry.proto")

SUBSCRIPTION = ConfigResource(ResourceType.CLIENT_METRICS, "everything")
SOURCE = Path(__file__).with_name("PushedMetrics.java")
SECONDS = 4
PATIENCE = 100.0

# What Java's clients push of the standard metrics.
STANDARD = {
    "java-producer": {
        "org.apache.kafka.producer.connection.creation.rate",
        "org.apache.kafka.producer.connection.creation.total",
        "org.apache.kafka.producer.node.request.latency.avg",
        "org.apache.kafka.producer.node.request.latency.max",
        "org.apache.kafka.producer.produce.throttle.time.avg",
        "org.apache.kafka.producer.record.queue.time.avg",
        "org.apache.kafka.producer.record.queue.time.max",
    },
    "java-consumer": {
        "org.apache.kafka.consumer.connection.creation.total",
        "org.apache.kafka.consumer.coordinator.assigned.partitions",
        "org.apache.kafka.consumer.coordinator.commit.latency.avg",
        "org.apache.kafka.consumer.coordinator.rebalance.latency.avg",
        "org.apache.kafka.consumer.coordinator.rebalance.latency.max",
        "org.apache.kafka.consumer.coordinator.rebalance.latency.total",
        "org.apache.kafka.consumer.fetch.manager.fetch.latency.avg",
        "org.apache.kafka.consumer.fetch.manager.fetch.latency.max",
        "org.apache.kafka.consumer.node.request.latency.avg",
    },
    "java-admin": {"org.apache.kafka.admin.client.connection.creation.total"},
}


async def subscribe(servers: str, **changes: str | int) -> None:
    async with aiokwire.Admin(servers) as admin:
        wanted = {"metrics": "*", "interval.ms": 500, **changes}
        (await admin.alter_configs({SUBSCRIPTION: wanted})).check()


def java_command(servers: str) -> list[str]:
    try:
        return [java(), "-cp", f"{libs('4.3.1')}/*", str(SOURCE), servers, "orders", str(SECONDS)]
    except MissingPrerequisite as missing:
        lacking(str(missing))


@pytest.mark.timeout(200)
async def test_java_clients_push_to_the_embedded_broker() -> None:
    async with Broker(topics={"orders": 1}, client_metrics=True) as broker:
        await subscribe(broker.bootstrap_servers)
        with anyio.fail_after(PATIENCE):
            done = await anyio.run_process(java_command(broker.bootstrap_servers), stderr=subprocess.STDOUT)
        ids = dict(line.split() for line in done.stdout.decode().splitlines() if line.startswith("java-"))
        clients = {one.client.client_id: one for one in broker.client_metrics()}
        for name, expected in STANDARD.items():
            found = clients[name]
            pushed = {one.metric.name for one in found.values.values()}
            assert expected <= pushed, sorted(expected - pushed)
            assert found.id_text == ids[name]
            assert found.client.software_name == "apache-kafka-java"
            assert found.client.software_version == "4.3.1"
        total = _value(clients["java-producer"].samples(), "org.apache.kafka.producer.record.send.total")
        assert 0 < total <= len(broker.records("orders")), "differences add up"


def _value(samples: list[Sample], name: str) -> float:
    (value,) = [one.value for one in samples if one.metric.name == name]
    assert isinstance(value, float)
    return value
