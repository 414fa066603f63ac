"""A handler blocks the event loop for several session timeouts: no eviction, no rebalance, nothing processed twice."""

from __future__ import annotations

import collections
import logging
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from aiokwire import Admin, Consumer, Producer
from integration.conftest import PARTITIONS
from integration.embedded import EmbeddedProcess
from integration.kafka import KafkaServer, MissingPrerequisite, real_kafka

BROKERS = ("embedded", "kafka-4.3.1")
SESSION_MS = 6_000
BLOCKED = 20.0
RECORDS = 400
SETTINGS: dict[str, object] = {
    "group_consumer_min_session_timeout_ms": SESSION_MS,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "group_consumer_min_heartbeat_interval_ms": 1_000,
    "group_consumer_heartbeat_interval_ms": 2_000,
}


@pytest.fixture(scope="module", params=BROKERS)
def server(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """A broker with short sessions in both protocols."""
    if request.param not in request.config.getoption("--brokers").split(","):
        pytest.skip("left out by --brokers")
    if request.param == "embedded":
        started: KafkaServer = EmbeddedProcess(settings=SETTINGS)
    else:
        try:
            settings = {name.replace("_", "."): value for name, value in SETTINGS.items()}
            started = real_kafka(request.param.removeprefix("kafka-"), settings=settings)
        except MissingPrerequisite as missing:
            pytest.skip(f"missing: {missing}")
    try:
        started.start()
        yield started
    finally:
        started.close()


def slow_handler() -> None:
    """What users do who are not to lose their partitions for it."""
    time.sleep(BLOCKED)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_slow_handler_keeps_its_partitions(
    server: KafkaServer, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"blocked-{uuid.uuid4().hex[:10]}"
    session: dict[str, Any] = {}  # the broker's choice in the consumer protocol
    if protocol == "classic":
        session = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 2_000}
    seen: collections.Counter[tuple[int, int]] = collections.Counter()
    async with Admin(server.bootstrap_servers) as admin:
        await admin.create_topic(name, PARTITIONS, replication_factor=1)
        async with Producer(server.bootstrap_servers) as producer:
            for number in range(RECORDS):
                await producer.submit(name, b"%d" % number, partition=number % PARTITIONS)
        async with Consumer(
            name,
            bootstrap_servers=server.bootstrap_servers,
            group_id=name,
            group_protocol=protocol,
            auto_offset_reset="earliest",
            **session,
        ) as consumer:
            before = None
            with caplog.at_level(logging.INFO, logger="aiokwire.consumer"):
                while len(seen) < RECORDS:
                    records = await consumer.getmany(max_records=50, timeout=10)
                    seen.update((record.partition, record.offset) for record in records)
                    if before is None and len(seen) >= RECORDS // 4:
                        before = await admin.describe_group(name)
                        caplog.clear()
                        slow_handler()
                await consumer.getmany(timeout=0.5)  # the last ones are finished
            after = await admin.describe_group(name)
        assert before is not None
        assert set(seen.values()) == {1}
        assert (after.members, after.epoch, after.state) == (before.members, before.epoch, "Stable")
        assert not [record.message for record in caplog.records if "reads" in record.message], "a rebalance"
        (blocked,) = [record.message for record in caplog.records if record.name == "aiokwire.watchdog"]
        assert "in slow_handler" in blocked
        offsets = await admin.list_group_offsets(name)
        assert [one.offset for one in offsets.values()] == [RECORDS // PARTITIONS] * PARTITIONS
