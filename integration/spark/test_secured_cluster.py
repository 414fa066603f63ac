"""Spark on brokers with TLS and logins, on a standalone master with two workers.

Executors have the packed environment and the files of `spark.files` only, as in `docs/spark.md`.
"""

from __future__ import annotations

import asyncio
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from aiokwire import Consumer
from aiokwire.types import TopicPartition
from integration.kafka.secure import Access, SecureServer
from integration.spark.cluster import CONF, Cluster
from integration.spark.driver import PATIENCE, Driver
from integration.spark.environment import make_environment, pack
from integration.spark.secured import (
    FILES,
    PARTITIONS,
    User,
    Watch,
    check,
    check_traces,
    create_user,
    files_with,
    prepare,
    secrets,
)
from integration.spark.secured_job import ROWS

pytestmark = pytest.mark.timeout(1800)

ENVIRONMENT: Final = ("environment", "environment.tar.gz")
SHIPPED: Final = {"spark.files": ",".join(FILES)}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packed environment, which is shared by the drivers."""
    folder = tmp_path_factory.mktemp("environment")
    make_environment(folder / "environment", "tls")
    pack(folder / "environment", folder / "environment.tar.gz")
    return folder


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    with Cluster(tmp_path / "cluster") as cluster:
        cluster.start_worker("worker-1")
        cluster.start_worker("worker-2")
        yield cluster


def test_executors_log_in_and_leave_no_trace_of_a_password(
    secure_broker: SecureServer, environment: Path, cluster: Cluster, tmp_path: Path
) -> None:
    for name in ENVIRONMENT:
        (tmp_path / name).symlink_to(environment / name)
    access = secure_broker.access
    user = asyncio.run(create_user(access))
    work = prepare(tmp_path, access, user, {"spark.master": cluster.address, **SHIPPED})
    driver = Driver(tmp_path, "-m", "integration.spark.secured_job", str(work))
    try:
        with Watch({driver.process.pid} | cluster.sessions) as watch:
            check_traces(driver, tmp_path, user)
        found = driver.end()
    finally:
        driver.kill()
    check(found, access, user)
    watch.check(user)
    assert sorted(tmp_path.glob("cluster/worker-*/app-*/*/stderr")), "the logs of executors were searched"
    declared(cluster, access, user, tmp_path)


def declared(cluster: Cluster, access: Access, user: User, folder: Path) -> None:
    """Run `aiokwire spark run` with a properties file again, from another checkpoint."""
    properties = folder / "private" / "client.properties"
    properties.touch(stat.S_IRUSR | stat.S_IWUSR)
    lines = [f"{name.removeprefix('kafka.')}={value}" for name, value in user.login().items()]
    properties.write_text("\n".join([f"bootstrap.servers={access.address('SASL_SSL')}", *lines]))
    command = ["-m", "aiokwire", "spark", "run", "loud.toml", "--command-config", str(properties), "--json"]
    command += ["--master", cluster.address, "--set", f"prefix={user.prefix}", "--checkpoint", str(folder / "again")]
    for name, value in (CONF | SHIPPED).items():
        command += ["--conf", f"{name}={value}"]
    driver = Driver(folder, *command)
    try:
        with Watch({driver.process.pid} | cluster.sessions) as watch:
            driver.process.wait(PATIENCE)
        assert driver.end()["rows_read"] == {"loud": ROWS}
    finally:
        driver.kill()
    watch.check(user)
    assert files_with(folder, secrets(user)) == []
    rows = Counter(asyncio.run(values(access, f"{user.prefix}loud")))
    assert rows == Counter({str(number): 2 for number in range(ROWS)})


async def values(access: Access, topic: str) -> list[str]:
    """Return the committed values of a topic."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(topic, **access.options("SASL_SSL", "SCRAM-SHA-512"), **options) as consumer:
        ends = await consumer.end_offsets(places)
        found: list[str] = []
        while [place for place in places if await consumer.position(place) < ends[place]]:
            found += [(record.value or b"").decode() for record in await consumer.getmany(timeout=0.05)]
        return found
