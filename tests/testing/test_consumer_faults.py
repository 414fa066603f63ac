"""The consumer and faults on demand: every record is delivered once, in order."""

from __future__ import annotations

from typing import Any

import pytest

from aiokwire.broker import Broker
from aiokwire.errors import AuthorizationError
from aiokwire.protocol.messages import fetch
from aiokwire.testing import ApiKey, ErrorCode
from tests.testing.clients import ONE, Quick, fill, numbers, read, reader_of


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 3, "topics": {"t": 3, "one": 1}, "auto_create_topics": False}


async def test_a_leader_that_moves_is_followed(kafka_broker: Broker, quick: Quick) -> None:
    async with reader_of(kafka_broker, quick, "one") as reader:
        seen = []
        for step in range(6):
            kafka_broker.faults.move_leader("one", 0, kafka_broker.nodes[step % 3])
            await fill(kafka_broker, numbers(10, 10 * step))
            seen += await read(reader, 10)
    assert seen == numbers(60)
    assert {entry.node for entry in kafka_broker.journal.of(fetch.FetchRequest)} == {1, 2, 3}


async def test_stale_metadata_costs_only_time(kafka_broker: Broker, quick: Quick) -> None:
    await fill(kafka_broker, numbers(5))
    async with reader_of(kafka_broker, quick, "one") as reader:
        assert await read(reader, 5) == numbers(5)
        kafka_broker.faults.freeze_metadata()
        kafka_broker.faults.move_leader("one", 0, 2)
        kafka_broker.journal.clear()
        await kafka_broker.journal.wait_for(lambda entry: entry.api == ApiKey.METADATA, count=3)
        kafka_broker.faults.thaw_metadata()
        await fill(kafka_broker, numbers(5, 5))
        assert await read(reader, 5) == numbers(5, 5)


async def test_a_node_that_stops_and_comes_back_loses_nothing(kafka_broker: Broker, quick: Quick) -> None:
    async with reader_of(kafka_broker, quick, "one") as reader:
        seen = []
        for step in range(4):
            leader = kafka_broker.faults.leader("one", 0)
            await kafka_broker.faults.stop_node(leader)
            await fill(kafka_broker, numbers(10, 10 * step))
            seen += await read(reader, 10)
            await kafka_broker.faults.start_node(leader)
    assert seen == numbers(40)


async def test_a_partition_without_a_leader_is_read_when_it_has_one(kafka_broker: Broker, quick: Quick) -> None:
    for partition in range(3):
        await fill(kafka_broker, [b"%d" % partition], "t", partition)
    await kafka_broker.faults.stop_node(2, fail_over=False)
    async with reader_of(kafka_broker, quick, "t") as reader:
        assert sorted(value or b"" for value in await read(reader, 2)) == [b"0", b"2"]
        await kafka_broker.faults.start_node(2)
        assert await read(reader, 1) == [b"1"]


@pytest.mark.parametrize("fault", ["close", "close_after", "drop", "delay"])
async def test_a_lost_fetch_is_sent_again(kafka_broker: Broker, quick: Quick, fault: str) -> None:
    await fill(kafka_broker, numbers(100))
    found = kafka_broker.faults.on(ApiKey.FETCH, nth=2, times=2)
    if fault == "delay":
        found.delay(0.3)
    else:
        getattr(found, fault)()
    async with reader_of(kafka_broker, quick, "one", request_timeout_ms=150, fetch_max_bytes=200) as reader:
        assert await read(reader, 100) == numbers(100)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
)
async def test_an_error_that_passes_costs_no_record(kafka_broker: Broker, quick: Quick, code: ErrorCode) -> None:
    rule = kafka_broker.faults.on(ApiKey.FETCH, nth=2, times=2).error(code)
    async with reader_of(kafka_broker, quick, "one") as reader:
        await fill(kafka_broker, numbers(10))
        seen = await read(reader, 10)
        await rule.hit(2)
        await fill(kafka_broker, numbers(10, 10))
        seen += await read(reader, 10)
        assert await reader.position(ONE) == 20
    assert seen == numbers(20)


async def test_an_error_of_one_partition_leaves_the_others_flowing(kafka_broker: Broker, quick: Quick) -> None:
    for partition in range(3):
        await fill(kafka_broker, [b"%d" % partition], "t", partition)
    rule = kafka_broker.faults.on(ApiKey.FETCH, topic="t", partition=1, times=None).error(
        ErrorCode.REPLICA_NOT_AVAILABLE
    )
    async with reader_of(kafka_broker, quick, "t") as reader:
        assert sorted(value or b"" for value in await read(reader, 2)) == [b"0", b"2"]
        rule.remove()
        assert await read(reader, 1) == [b"1"]


async def test_a_refusal_is_raised_and_names_the_partition(kafka_broker: Broker, quick: Quick) -> None:
    kafka_broker.faults.on(ApiKey.FETCH, times=None).error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    async with reader_of(kafka_broker, quick, "one") as reader:
        with pytest.raises(AuthorizationError, match="one"):
            await read(reader, 1)


async def test_offsets_are_looked_up_again_when_the_response_is_lost(kafka_broker: Broker, quick: Quick) -> None:
    await fill(kafka_broker, numbers(3))
    kafka_broker.faults.on(ApiKey.LIST_OFFSETS).close()
    kafka_broker.faults.on(ApiKey.LIST_OFFSETS).error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    kafka_broker.faults.on(ApiKey.LIST_OFFSETS).error(ErrorCode.LEADER_NOT_AVAILABLE)
    async with reader_of(kafka_broker, quick, "one") as reader:
        assert await read(reader, 3) == numbers(3)
