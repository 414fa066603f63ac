"""A data directory of Kafka, opened by the embedded broker: records that Kafka keeps are kept."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import closing
from pathlib import Path

import pytest

from aiokwire import Admin, Producer
from aiokwire.broker import Broker
from aiokwire.broker.state import BrokerState
from aiokwire.clock import wall_ms
from integration.kafka import JavaTools, MissingPrerequisite, RealKafka
from integration.kafka.fetch import java, libs
from tests.broker.logs import apply_retention

MONTH_MS = 30 * 24 * 3600 * 1000
_CONFIGS: dict[str, dict[str, str]] = {
    "kept": {"retention.ms": "-1"},
    "short": {"retention.ms": "3600000"},
    "sized": {"retention.bytes": "100000", "retention.ms": "-1"},
    "compacted": {"cleanup.policy": "compact"},
    "plain": {},
}
_SNAPSHOT_SECONDS = 20.0


async def _fill(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        for name, configs in _CONFIGS.items():
            await admin.create_topic(name, 2, configs=configs)
        await admin.create_topic("deleted", 1, configs={"retention.ms": "1"})
        await admin.delete_topic("deleted")
    async with Producer(bootstrap) as producer:
        for name in _CONFIGS:
            await producer.send(name, b"v", key=b"k", partition=1, timestamp=wall_ms() - MONTH_MS)


@pytest.fixture(scope="module", params=["log", "snapshot"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the data of a Kafka 4.3.1, with its metadata in the log only or in a snapshot, too."""
    try:
        java()
        libs("4.3.1")
    except MissingPrerequisite as missing:
        pytest.skip(f"missing: {missing}")
    # Kafka's own retention must not run first.
    settings: dict[str, object] = {"log.retention.check.interval.ms": 3_600_000}
    if request.param == "snapshot":
        settings["metadata.log.max.record.bytes.between.snapshots"] = 500
    with closing(RealKafka("4.3.1", settings=settings)) as server:
        server.start()
        asyncio.run(_fill(server.bootstrap_servers))
        if request.param == "snapshot":
            _await_snapshot(server)
        server.stop()
        target = tmp_path_factory.mktemp("adopted") / "data"
        shutil.copytree(server.data_dir, target)
    return target


def _await_snapshot(server: RealKafka) -> None:
    """Change a config until Kafka has written a snapshot with the topics' configs."""
    tools = JavaTools(server.bootstrap_servers)
    deadline = time.perf_counter() + _SNAPSHOT_SECONDS
    while not _has_snapshot(server.data_dir) and time.perf_counter() < deadline:
        tools.run(
            "kafka.admin.ConfigCommand",
            *("--bootstrap-server", server.bootstrap_servers, "--alter", "--entity-type", "topics"),
            *("--entity-name", "short", "--add-config", "retention.ms=3600000"),
        ).checked()
    assert _has_snapshot(server.data_dir)


def _has_snapshot(data_dir: Path) -> bool:
    snapshots = sorted((data_dir / "__cluster_metadata-0").glob("*.checkpoint"))
    return bool(snapshots) and b"compacted" in snapshots[-1].read_bytes()


def _kept(state: BrokerState) -> dict[str, int]:
    return {
        topic.name: topic.partitions[1].log.end_offset - topic.partitions[1].log.log_start_offset
        for topic in state.topics
    }


async def test_a_topic_without_retention_in_kafka_keeps_its_old_records(written: Path, tmp_path: Path) -> None:
    shutil.copytree(written, tmp_path / "data")
    async with Broker(tmp_path / "data") as broker:
        apply_retention(broker.state.logs, wall_ms())
        assert _kept(broker.state) == {"kept": 1, "short": 0, "sized": 1, "compacted": 1, "plain": 1}
        assert {topic.name: topic.configs for topic in broker.state.topics} == _CONFIGS


async def test_without_kafkas_metadata_records_are_kept_until_an_option_allows_retention(
    written: Path, tmp_path: Path
) -> None:
    shutil.copytree(written, tmp_path / "data")
    shutil.rmtree(tmp_path / "data" / "__cluster_metadata-0")
    async with Broker(tmp_path / "data") as broker:
        apply_retention(broker.state.logs, wall_ms())
        assert set(_kept(broker.state).values()) == {1}
    async with Broker(tmp_path / "data", apply_retention=True) as broker:
        apply_retention(broker.state.logs, wall_ms())
        assert set(_kept(broker.state).values()) == {0}
