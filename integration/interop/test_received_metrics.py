"""KIP-714 with a peer: Kafka receives what our clients push, and passes it to its plugin."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

import aiokwire
from aiokwire.admin import ConfigResource, ResourceType
from aiokwire.metrics import Sample
from aiokwire.worker import Worker
from integration.conftest import lacking
from integration.kafka import MissingPrerequisite, RealKafka
from integration.kafka.fetch import libs

metrics_pb2 = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")

VERSION = "4.3.1"
SOURCE = Path(__file__).with_name("MetricsReceiver.java")
EVERYTHING = ConfigResource(ResourceType.CLIENT_METRICS, "everything")
PATIENCE = 60.0

STANDARD = {
    "org.apache.kafka.producer.": {
        "connection.creation.total",
        "node.request.latency.avg",
        "produce.throttle.time.avg",
        "record.queue.time.avg",
    },
    "org.apache.kafka.consumer.": {
        "connection.creation.total",
        "coordinator.assigned.partitions",
        "coordinator.commit.latency.avg",
        "coordinator.rebalance.latency.total",
        "fetch.manager.fetch.latency.avg",
        "node.request.latency.avg",
    },
}


class Push(NamedTuple):
    """What Kafka received from a client at one time."""

    client_id: str
    instance_id: str
    number: int
    is_last: bool
    metrics: dict[str, Any]  # by name

    @classmethod
    def of(cls, file: Path) -> Push:
        """Decode a file of the plugin; its name has the origin."""
        client_id, instance_id, number, end = file.name.split()
        data = metrics_pb2.MetricsData.FromString(file.read_bytes())
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        found = {metric.name: metric for scope in scopes for metric in scope.metrics}
        return cls(client_id, instance_id, int(number), end == "last", found)


class Receiver:
    """A Kafka whose plugin writes pushes to a directory."""

    def __init__(self, servers: str, directory: Path) -> None:
        self.servers = servers
        self._directory = directory

    def pushes(self, client_id: str) -> list[Push]:
        """Return what a client has pushed until now."""
        found = [Push.of(file) for file in self._directory.iterdir() if not file.name.startswith(".")]
        return sorted((one for one in found if one.client_id == client_id), key=lambda one: one.number)

    async def wait(self, client_id: str, is_enough: Callable[[list[Push]], bool]) -> list[Push]:
        """Wait until a client has pushed what a test waits for."""
        with anyio.fail_after(PATIENCE):
            while not is_enough(found := self.pushes(client_id)):  # noqa: ASYNC110 - the broker is another process
                await anyio.sleep(0.05)
        return found


def compiled(folder: Path) -> None:
    """Compile the plugin against the jars of Kafka."""
    compiler = shutil.which("javac")
    if compiler is None:
        lacking("javac: install a JDK 17 or newer")
    command = [compiler, "-d", str(folder), "-cp", f"{libs(VERSION)}/*", str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    classes, directory = tmp_path_factory.mktemp("classes"), tmp_path_factory.mktemp("pushes")
    try:
        compiled(classes)
        kafka = RealKafka(
            VERSION,
            settings={"metric.reporters": "MetricsReceiver"},
            jvm_options=[
                "-cp",
                os.pathsep.join((f"{libs(VERSION)}/*", str(classes))),
                f"-Dmetrics.directory={directory}",
            ],
        )
    except MissingPrerequisite as missing:
        lacking(str(missing))
    with kafka:
        yield Receiver(kafka.bootstrap_servers, directory)


async def subscribe(servers: str, metrics: str = "*") -> None:
    """Request metrics as an operator does."""
    async with aiokwire.Admin(servers) as admin:
        wanted: dict[str, str | int] = {
            "metrics": metrics,
            "interval.ms": 500,
            "match": "client_software_name=aiokwire",
        }
        (await admin.alter_configs({EVERYTHING: wanted})).check()


def total(pushes: list[Push], name: str) -> float:
    """Add up the differences of a counter; a histogram's count."""
    points = [point for push in pushes if name in push.metrics for point in points_of(push.metrics[name])]
    return float(
        sum(point.count if hasattr(point, "bucket_counts") else point.as_int or point.as_double for point in points)
    )


def points_of(metric: Any) -> Any:
    """Return the points of a metric of any kind."""
    return getattr(metric, metric.WhichOneof("data")).data_points


def own_names(samples: list[Sample]) -> set[str]:
    """Return the names under which a client pushes its metrics, apart from those of partitions."""
    return {f"aiokwire.{one.metric.name}" for one in samples if "messaging.destination.partition.id" not in one.labels}


@pytest.mark.timeout(120)
async def test_kafka_receives_the_metrics_of_every_kind_of_client(receiver: Receiver) -> None:
    servers = receiver.servers
    await subscribe(servers)
    handled = anyio.Event()
    worker = Worker(servers, client_id="billing", group_id="billing", commit_interval_ms=100)

    @worker.handler("orders")
    async def bill(order: bytes) -> None:
        if order == b"99":
            handled.set()

    async with (
        aiokwire.Admin(servers, client_id="desk", enable_metrics_push=True) as admin,
        aiokwire.Producer(servers, client_id="out") as producer,
    ):
        await admin.create_topic("orders", 1)
        async with worker:
            await producer.send_many("orders", [str(number).encode() for number in range(100)])
            await handled.wait()
            await receiver.wait(
                "billing", lambda found: total(found, "aiokwire.messaging.client.consumed.messages") >= 100
            )
        await receiver.wait("out", lambda found: total(found, "aiokwire.messaging.client.sent.messages") >= 100)
        await receiver.wait("desk", bool)
        names = own_names(producer.metrics())
        instance = producer.client_instance_id
    sent = await receiver.wait("out", lambda found: found[-1].is_last)
    assert [push.is_last for push in sent].count(True) == 1, "at the end of the client"
    assert {push.instance_id for push in sent} == {instance}
    assert total(sent, "aiokwire.messaging.client.sent.messages") == 100
    pushed = {name for push in sent for name in push.metrics}
    assert names <= pushed
    handlers = {name for push in receiver.pushes("billing") for name in push.metrics}
    for prefix, found in (("org.apache.kafka.producer.", pushed), ("org.apache.kafka.consumer.", handlers)):
        assert {prefix + name for name in STANDARD[prefix]} <= found
    assert "org.apache.kafka.admin.client.connection.creation.total" in {
        name for push in receiver.pushes("desk") for name in push.metrics
    }


@pytest.mark.timeout(120)
async def test_kafka_receives_only_what_it_requests(receiver: Receiver) -> None:
    prefix = "org.apache.kafka.producer.record."
    await subscribe(receiver.servers, prefix)
    async with aiokwire.Producer(receiver.servers, client_id="modest") as producer:
        await producer.send("orders", b"paid")
        found = await receiver.wait("modest", lambda found: any(push.metrics for push in found))
    assert all(name.startswith(prefix) for push in found for name in push.metrics)
