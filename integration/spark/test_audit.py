"""`aiokwire spark audit` on the flights, and compared with an archive."""

from __future__ import annotations

import asyncio
import collections
import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from aiokwire import Admin, Producer
from aiokwire.admin import ConfigResource, ResourceType
from aiokwire.cli.demo.flights import load_flights
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.spark.process import run, stopped, summary

pytestmark = pytest.mark.timeout(600)

FLIGHTS = 60_000
COMMITTED = 1_000
ABORTED = 500
TWICE = 10


class Topic(NamedTuple):
    """A topic of flights: some committed in a transaction, some aborted, and some sent twice."""

    servers: str
    name: str
    keys: collections.Counter[str]


@pytest.fixture(scope="module")
def topic(modern_broker: BrokerUnderTest) -> Topic:
    name = modern_broker.create("flights")
    keys, values, _ = load_flights()
    records = list(zip(keys, values, strict=True))[: FLIGHTS + COMMITTED + ABORTED]
    plain, committed = records[:FLIGHTS], records[FLIGHTS : FLIGHTS + COMMITTED]
    plain += plain[-TWICE:]

    async def send() -> None:
        async with Producer(modern_broker.bootstrap_servers, compression_type="lz4") as producer:
            for key, value in plain:
                await producer.submit(name, value, key=key)
        async with Producer(modern_broker.bootstrap_servers, transactional_id=name) as producer:
            async with producer.transaction():
                for key, value in committed:
                    await producer.submit(name, value, key=key)
            async with producer.transaction() as transaction:
                for key, value in records[FLIGHTS + COMMITTED :]:
                    await producer.submit(name, value, key=key)
                await producer.flush()
                await transaction.abort()

    asyncio.run(send())
    known = collections.Counter(key.decode() for key, _ in plain + committed if key is not None)
    return Topic(modern_broker.bootstrap_servers, name, known)


def total(report: Mapping[str, Any], what: str) -> int:
    return sum(each[what] for each in report["partitions"])


def check(report: Mapping[str, Any], topic: Topic) -> None:
    """Check that every offset is counted, and that the counts match the sent records."""
    assert report["records"] == total(report, "records") == FLIGHTS + TWICE + COMMITTED
    assert total(report, "aborted") == ABORTED
    for each in report["partitions"]:
        control = each["control"]
        assert each["start"] == 0
        assert each["end"] == each["records"] + each["aborted"] + control["records"]
        assert control["records"] == control["commits"] + control["aborts"] >= 2
        assert each["missing"]["offsets"] == each["compacted"]["offsets"] == 0
        assert each["batches"]["records"]["total"] == each["end"]
        assert each["batches"]["by_codec"]["lz4"] > 0
    keys = report["keys"]
    assert keys["distinct"] == len(topic.keys)
    assert keys["error"] == 0
    assert [(each["key"], each["records"]) for each in keys["top"]] == sorted(
        topic.keys.items(), key=lambda item: (-item[1], item[0])
    )[: len(keys["top"])]
    assert report["duplicates"]["extra"] == TWICE


def test_a_topic_is_counted_and_compared_with_its_archive(topic: Topic, tmp_path: pathlib.Path) -> None:
    lake, document = tmp_path / "lake", tmp_path / "report.html"
    summary(tmp_path, "archive", topic.name, "--to", str(lake), "-b", topic.servers)
    command = ("audit", topic.name, "-b", topic.servers, "--json", "--against", str(lake), "--html", str(document))
    found = run(tmp_path, *command, "--fail-on", "gaps,differences,aborted")
    assert found.status == 1, found.errors
    report = json.loads(found.out)
    check(report, topic)
    assert {each["finding"] for each in report["found"] if each["fails"]} == {"aborted"}
    assert report["against"]["records"] == report["records"]
    assert report["against"]["differences"] == []
    text = document.read_text()
    assert f"Audit of {topic.name}" in text
    assert text.count("data:image/svg+xml;base64,") >= 7


def test_an_interrupted_audit_leaves_no_files(topic: Topic, tmp_path: pathlib.Path) -> None:
    document = tmp_path / "report.html"
    slow = ("-o", "maxRecordsPerPartition=25")  # thousands of tasks
    command = ("audit", topic.name, "-b", topic.servers, "--html", str(document), *slow)
    ended = stopped(tmp_path, *command, when=lambda output: "counting" in output)
    assert ended.status == 0, ended.errors
    assert "Traceback" not in ended.errors
    assert [path.name for path in tmp_path.iterdir()] == ["stderr"]


def test_compacted_offsets_are_distinguished_from_missing_ones(
    modern_broker: BrokerUnderTest, tmp_path: pathlib.Path
) -> None:
    if modern_broker.name == "embedded":
        pytest.skip("the embedded broker does not compact")
    name = f"{modern_broker.create('compacted')}-log"

    async def write() -> int:
        """Write until the cleaner has compacted the start of the log.

        Return the number of records.
        """
        servers = modern_broker.bootstrap_servers
        async with Admin(servers) as admin, Producer(servers) as producer:
            everywhere = ConfigResource(ResourceType.BROKER, "")
            await admin.alter_configs({everywhere: {"log.cleaner.backoff.ms": "100"}})
            configs = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "200"}
            await admin.create_topic(name, 1, configs=configs)
            for number in range(400):
                await producer.submit(name, b"%d" % number, key=b"k%d" % (number % 7))
                if number % 10 == 9:
                    await producer.flush()
            sent = 400
            async with asyncio.timeout(90):
                while await _first(servers, name) == 0:
                    await producer.send(name, b"more", key=b"k0")
                    sent += 1
            return sent

    sent = asyncio.run(write())
    report = summary(tmp_path, "audit", name, "-b", modern_broker.bootstrap_servers, "--duplicates", "none")
    [partition] = report["partitions"]
    assert partition["log"]["compacted"] is True
    assert partition["end"] == sent
    holes = partition["compacted"]["offsets"] + partition["missing"]["offsets"]
    assert partition["records"] + holes == sent
    assert partition["compacted"]["offsets"] > 0
    assert PARTITIONS > 1


async def _first(servers: str, name: str) -> int:
    """Return the offset of the first record."""
    from aiokwire import Consumer

    async with Consumer(name, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        return (await consumer.getone()).offset
