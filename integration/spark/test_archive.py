"""`aiokwire spark archive`, stopped, killed and restarted: each record is archived once."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from aiokwire import Admin
from aiokwire.types import TopicPartition
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.spark import flights
from integration.spark.process import stopped, summary

pytestmark = pytest.mark.timeout(600)


def account(path: Path, count: int) -> None:
    """Check a plain read of the directory."""
    dataset: Any = ds.dataset(path, format="parquet", partitioning="hive")
    rows = dataset.to_table(columns=["partition", "offset", "value"]).to_pydict()
    places = sorted(zip(rows["partition"], rows["offset"], map(flights.number_of, rows["value"]), strict=True))
    assert len(places) == count
    assert sorted(number for _, _, number in places) == list(range(count))
    for partition in range(PARTITIONS):
        mine = [(offset, number) for home, offset, number in places if home == partition]
        assert [offset for offset, _ in mine] == list(range(len(mine)))
        assert [number for _, number in mine] == sorted(number for _, number in mine)


def rounds(path: Path) -> int:
    """Return the number of committed rounds."""
    return len(list((path / "_manifests").glob("[0-9]*.json")))


async def test_each_record_is_archived_once(modern_broker: BrokerUnderTest, tmp_path: Path) -> None:
    count = flights.COUNT
    topic, group = f"flights-{tmp_path.name}", f"lake-{tmp_path.name}"
    await flights.create(modern_broker, topic)
    await flights.send(modern_broker, topic, range(count * 2 // 3))
    path = tmp_path / "lake"
    arguments = ["archive", topic, "--to", str(path), "-b", modern_broker.bootstrap_servers, "--commit-group", group]
    small = [*arguments, "--round", "5000"]

    ended = stopped(tmp_path, *small, when=lambda _output: rounds(path) >= 2)
    assert ended.status == 0, ended.errors
    done = rounds(path)
    ended = stopped(tmp_path, *small, by=signal.SIGKILL, when=lambda _output: rounds(path) >= done + 2)
    assert ended.status == -signal.SIGKILL
    await flights.send(modern_broker, topic, range(count * 2 // 3, count))
    rest = summary(tmp_path, *arguments)
    assert 0 < rest["records"] < count
    account(path, count)
    assert summary(tmp_path, *arguments)["records"] == 0

    async with Admin(modern_broker.bootstrap_servers) as admin:
        committed = await admin.list_group_offsets(group)
    assert rest["offsets"] == {topic: {str(n): committed[TopicPartition(topic, n)].offset for n in range(PARTITIONS)}}

    compacted = summary(tmp_path, "archive", "--to", str(path), "--compact", "--compression", "zstd")
    assert (compacted["records"], compacted["files_after"]) == (count, 5 * PARTITIONS)
    assert summary(tmp_path, "archive", "--to", str(path), "--verify")["faults"] == []
    account(path, count)
