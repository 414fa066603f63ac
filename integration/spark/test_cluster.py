"""A standalone cluster of two workers, set up as in `docs/spark.md`.

The environment has no PySpark. A worker and a Python daemon are killed; each row is stored once.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from integration.spark.account import check_copies, values_of
from integration.spark.cluster import CONF, Cluster, wait_until
from integration.spark.cluster_job import Work
from integration.spark.driver import PATIENCE, Driver
from integration.spark.environment import make_environment, pack
from tests.spark.conftest import Kafka, broker_process

pytestmark = pytest.mark.timeout(1200)

PARTITIONS: Final = 2
ROWS: Final = 40  # in each feed
LARGEST_ARCHIVE: Final = 150 * 1024 * 1024
DECLARED: Final = """
bootstrap = "${brokers}"
[sources.rows]
topic = "${source}"
string = true
[steps.counted]
sql = "select upper(value) as value from rows"
[sinks.loud]
from = "counted"
topic = "${loud}"
delivery = "exactly-once"
"""


@pytest.fixture
def kafka() -> Iterator[Kafka]:
    with broker_process() as servers:
        yield Kafka(servers)


def feed(kafka: Kafka, topic: str, fed: list[str]) -> None:
    rows = [f"row {len(fed) + number}" for number in range(ROWS)]
    for partition in range(PARTITIONS):
        kafka.produce(topic, [row.encode() for row in rows[partition::PARTITIONS]], partition)
    fed += rows


def test_a_packed_environment_is_all_that_executors_need(kafka: Kafka, tmp_path: Path) -> None:
    make_environment(tmp_path / "environment")
    archive = tmp_path / "environment.tar.gz"
    pack(tmp_path / "environment", archive)
    assert archive.stat().st_size < LARGEST_ARCHIVE
    assert not list((tmp_path / "environment").glob("lib/*/site-packages/pyspark"))
    for topic in ("rows", "batch", "stream", "loud"):
        kafka.create(topic, PARTITIONS)
    fed: list[str] = []
    feed(kafka, "rows", fed)

    with Cluster(tmp_path) as cluster:
        cluster.start_worker("worker-1")
        cluster.start_worker("worker-2")
        work = Work(cluster.address, kafka.servers, "rows", "batch", "stream", str(tmp_path / "data"))
        driver = Driver(tmp_path, "-m", "integration.spark.cluster_job", json.dumps(dataclasses.asdict(work)))
        try:
            through_kills(kafka, cluster, driver, work, fed)
        finally:
            driver.kill()
        cluster.start_worker("worker-3")
        declared(kafka, cluster, tmp_path, fed)


def through_kills(kafka: Kafka, cluster: Cluster, driver: Driver, work: Work, fed: list[str]) -> None:
    """Check that executors run the packed environment, also after the kill of a daemon."""
    folders = {executable.partition("/app-")[0] for executable, _ in driver.wait_for("executors")}
    assert folders <= {str(Path(work.folder).with_name(name)) for name in ("worker-1", "worker-2")}
    for executable, package in driver.wait_for("executors"):
        assert Path(package).is_relative_to(Path(executable).parents[1])
    assert driver.wait_for("read") == ROWS
    assert driver.wait_for("archived") == ROWS
    driver.wait_for("streaming")
    copy = work.copy()

    def committed(batches: int) -> None:
        wait_until(lambda: copy.is_past(batches) or driver.process.poll() is not None, PATIENCE, "a microbatch")

    committed(0)
    done = copy.committed()
    for pid in cluster.python_daemons():
        os.kill(pid, signal.SIGKILL)
    feed(kafka, work.source, fed)
    committed(done)
    done = copy.committed()
    cluster.kill("worker-1")
    feed(kafka, work.source, fed)
    committed(done)
    copy.stop_file.touch()
    driver.end()
    check_copies(asyncio.run(values_of(kafka.servers, work.batch, PARTITIONS)), fed[:ROWS])
    check_copies(asyncio.run(values_of(kafka.servers, work.stream, PARTITIONS)), fed)


def declared(kafka: Kafka, cluster: Cluster, folder: Path, fed: list[str]) -> None:
    """Run `aiokwire spark run` in the same way."""
    (folder / "loud.toml").write_text(DECLARED)
    command = ["-m", "aiokwire", "spark", "run", "loud.toml", "--master", cluster.address, "--json"]
    command += ["--set", f"brokers={kafka.servers}", "--set", "source=rows", "--set", "loud=loud"]
    command += ["--checkpoint", str(folder / "checkpoint")]
    for name, value in CONF.items():
        command += ["--conf", f"{name}={value}"]
    driver = Driver(folder, *command)
    try:
        driver.process.wait(PATIENCE)
        assert driver.end()["rows_read"]
    finally:
        driver.kill()
    found = Counter(asyncio.run(values_of(kafka.servers, "loud", PARTITIONS)))
    assert found == Counter(row.upper() for row in fed)
