"""Small runs: each acknowledged record is stored once, at its offset."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from anyio.to_thread import run_sync

from integration.chaos.faults import Kind, plan
from integration.chaos.run import PARTITIONS, Outcome, run
from integration.chaos.stored import read_with_librdkafka
from integration.chaos.verdict import judge
from integration.conftest import BrokerUnderTest
from integration.embedded import EmbeddedProcess
from integration.kafka import JavaTools, dump_faults

SEED = 7
SMALL_SEGMENTS = {"segment.bytes": 1 << 20}  # rolled often: many indexes and snapshots of producer states
BUFFER = 4 << 20  # small, so that records are acknowledged continuously

Tools = Callable[[BrokerUnderTest], JavaTools]


async def chaos(broker: BrokerUnderTest, records: int, kinds: list[Kind], **options: object) -> Outcome:
    """Run, and check the result with our own consumer."""
    faults = plan(random.Random(SEED), records, kinds)
    messages: list[str] = []
    outcome = await run(
        broker.may_be_killed,
        records,
        faults,
        report=messages.append,
        topic_configs=SMALL_SEGMENTS,
        buffer_memory=BUFFER,
        **options,
    )
    assert outcome.faults == [], messages
    assert len(messages) == len(faults)
    return outcome


async def check_with_librdkafka(broker: BrokerUnderTest, outcome: Outcome) -> None:
    """Check the result with librdkafka."""
    found = await run_sync(read_with_librdkafka, broker.bootstrap_servers, outcome.topic, PARTITIONS)
    assert judge(outcome.load.account, found).faults == []


def disturbances(broker: BrokerUnderTest) -> list[Kind]:
    """Return the faults for a broker.

    Kafka is killed only once, because its restart takes about ten seconds.
    """
    return [Kind.KILL, Kind.KILL, Kind.STOP, Kind.FREEZE] if broker.name == "embedded" else [Kind.KILL, Kind.FREEZE]


async def test_every_acknowledged_record_is_stored_once_and_in_order(modern_broker: BrokerUnderTest) -> None:
    outcome = await chaos(modern_broker, 300_000, disturbances(modern_broker))
    assert outcome.verdict.acknowledged == outcome.verdict.stored == outcome.load.accepted
    assert outcome.load.refused == 0
    await check_with_librdkafka(modern_broker, outcome)


async def test_a_failed_record_is_stored_at_most_once(modern_broker: BrokerUnderTest) -> None:
    outcome = await chaos(modern_broker, 150_000, [Kind.KILL, Kind.FREEZE], delivery_timeout_ms=600)
    assert outcome.verdict.acknowledged
    assert outcome.verdict.failed
    await check_with_librdkafka(modern_broker, outcome)


@pytest.mark.parametrize("timeout_ms", [120_000, 400])
async def test_the_files_of_the_embedded_broker_are_valid_after_a_run(
    embedded: BrokerUnderTest, java: Tools, timeout_ms: int
) -> None:
    server = embedded.may_be_killed
    assert isinstance(server, EmbeddedProcess)
    outcome = await chaos(embedded, 150_000, [Kind.KILL, Kind.FREEZE, Kind.KILL], delivery_timeout_ms=timeout_ms)
    assert await run_sync(server.stop) == 0
    try:
        files = server.files_of(outcome.topic)
        assert len([path for path in files if path.suffix == ".log"]) > PARTITIONS
        printed = await run_sync(lambda: java(embedded).dump(files, "--verify-index-only", "--skip-record-metadata"))
        assert dump_faults(printed) == []
        assert printed.count("Dumping ") == len(files)
    finally:
        await run_sync(server.restart)
