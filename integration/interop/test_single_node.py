"""Requests about a cluster of one node: the embedded broker responds as Kafka 4.3.1 does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from aiokwire import Admin, Producer
from aiokwire.errors import UnsupportedVersion
from integration.embedded import EmbeddedProcess
from integration.golden.asker import Asker
from integration.interop.single_node import TOPIC, comparable, requests
from integration.kafka import KafkaServer, MissingPrerequisite, RealKafka
from integration.kafka.fetch import java, libs


@contextmanager
def _asker(server: EmbeddedProcess | RealKafka) -> Iterator[Asker]:
    with closing(server):
        server.start()
        with Asker("127.0.0.1", server.port) as asker:
            yield asker


async def _fill(server: KafkaServer) -> None:
    async with Admin(server.bootstrap_servers) as admin:
        await admin.create_topic(TOPIC, 2)
    async with Producer(server.bootstrap_servers) as producer:
        await producer.send(TOPIC, b"v", partition=0)


def _answers(asker: Asker, data_dir: Path) -> dict[str, object]:
    """Return each response by its request and version."""
    found: dict[str, object] = {}
    for name, request in requests(str(data_dir)).items():
        first, last = asker.served[request.API]
        for version in range(first, last + 1):
            try:
                found[f"{name}, v{version}"] = comparable(asker.ask(request, version))
            except UnsupportedVersion:  # a field of the request needs a newer version
                continue
    return found


async def test_a_single_node_responds_as_a_kafka_cluster_of_one_node() -> None:
    try:
        java()
        libs("4.3.1")
    except MissingPrerequisite as missing:
        pytest.skip(f"missing: {missing}")
    kafka, embedded = RealKafka("4.3.1"), EmbeddedProcess()
    with _asker(kafka) as theirs, _asker(embedded) as ours:
        await _fill(kafka)
        await _fill(embedded)
        expected, found = _answers(theirs, kafka.data_dir), _answers(ours, embedded.data_dir)
        assert len(expected) > 50
        different = {name: (expected[name], found.get(name)) for name in expected if expected[name] != found.get(name)}
        assert not different
        assert found.keys() == expected.keys()
