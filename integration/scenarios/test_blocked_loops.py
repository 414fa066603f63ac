"""A handler blocks the event loop for several session timeouts: its member stays in the group."""

from __future__ import annotations

import collections
import logging
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from aiokwire import Admin, Consumer, Producer
from integration.conftest import PARTITIONS, broker_with
from integration.kafka import KafkaServer

BROKERS = ("embedded", "kafka-4.3.1")
SESSION_MS = 10_000
BLOCKED = 40.0
RECORDS = 400
SETTINGS: dict[str, object] = {
    "group_consumer_min_session_timeout_ms": SESSION_MS,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "group_consumer_min_heartbeat_interval_ms": 1_000,
    "group_consumer_heartbeat_interval_ms": 2_000,
}


@pytest.fixture(scope="module", params=BROKERS)
def server(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """A broker with short session timeouts in both protocols."""
    with broker_with(request.config, request.param, SETTINGS) as started:
        yield started


def slow_handler() -> None:
    """Block the event loop, as users' code may do without losing its partitions."""
    time.sleep(BLOCKED)


class Reader:
    """A member and its records."""

    def __init__(self, server: KafkaServer, topic: str, protocol: str) -> None:
        self.group = f"{topic}-{protocol}"
        self.seen: collections.Counter[tuple[int, int]] = collections.Counter()
        session: dict[str, Any] = {}  # the broker's choice in the consumer protocol
        if protocol == "classic":
            session = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 2_000}
        self.consumer = Consumer(
            topic,
            bootstrap_servers=server.bootstrap_servers,
            group_id=self.group,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            **session,
        )

    async def read(self, count: int) -> None:
        """Read until it has `count` records in total."""
        while len(self.seen) < count:
            records = await self.consumer.getmany(max_records=50, timeout=10)
            self.seen.update((record.partition, record.offset) for record in records)


@pytest.mark.timeout(180)
async def test_a_slow_handler_keeps_its_partitions(server: KafkaServer, caplog: pytest.LogCaptureFixture) -> None:
    """One member of each protocol, on the same loop."""
    name = f"blocked-{uuid.uuid4().hex[:10]}"
    readers = [Reader(server, name, protocol) for protocol in ("classic", "consumer")]
    async with Admin(server.bootstrap_servers) as admin:
        await admin.create_topic(name, PARTITIONS, replication_factor=1)
        async with Producer(server.bootstrap_servers) as producer:
            for number in range(RECORDS):
                await producer.submit(name, b"%d" % number, partition=number % PARTITIONS)
        async with readers[0].consumer, readers[1].consumer:
            for one in readers:
                await one.read(RECORDS // 4)
            before = [await admin.describe_group(one.group) for one in readers]
            with caplog.at_level(logging.INFO, logger="aiokwire.consumer"):
                caplog.clear()
                slow_handler()
                for one in readers:
                    await one.read(RECORDS)
                    assert await one.consumer.getmany(timeout=0.5) == []  # the last records are processed
            after = [await admin.describe_group(one.group) for one in readers]
        for one, then, now in zip(readers, before, after, strict=True):
            assert set(one.seen.values()) == {1}
            assert (now.members, now.epoch, now.state) == (then.members, then.epoch, "Stable"), one.group
            offsets = await admin.list_group_offsets(one.group)
            assert [offset.offset for offset in offsets.values()] == [RECORDS // PARTITIONS] * PARTITIONS
    assert not [record.message for record in caplog.records if "assigned" in record.message], "a rebalance"
    (blocked,) = [record.message for record in caplog.records if record.name == "aiokwire.watchdog"]
    assert "in slow_handler" in blocked
