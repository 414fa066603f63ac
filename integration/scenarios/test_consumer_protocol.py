"""Groups of the consumer protocol (KIP-848), and `auto`, which detects its support."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from aiokwire import BrokerError, BrokerPattern, Consumer, TopicPartition
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.scenarios.common import PATIENCE, partitions, write


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:10]}"


def member(
    broker: BrokerUnderTest, group: str, *topics: str | re.Pattern[str] | BrokerPattern, **options: Any
) -> Consumer[bytes, bytes]:
    given = {"group_protocol": "consumer", "auto_offset_reset": "earliest", **options}
    return Consumer(*topics, bootstrap_servers=broker.bootstrap_servers, group_id=group, **given)


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - other tasks, and a broker, bring it about
            await anyio.sleep(0.01)


async def values(reader: Consumer[bytes, bytes], count: int) -> set[bytes]:
    found: set[bytes] = set()
    with anyio.fail_after(PATIENCE):
        while len(found) < count:
            found |= {record.value or b"" for record in await reader.getmany(timeout=1)}
    return found


async def test_members_share_a_topic_and_take_over_the_partitions_of_others(
    modern_broker: BrokerUnderTest, group: str
) -> None:
    topic = modern_broker.create()
    for place in partitions(topic):
        await write(modern_broker, place, [b"%d" % place.partition])
    async with member(modern_broker, group, topic) as first:
        assert await values(first, PARTITIONS) == {b"%d" % number for number in range(PARTITIONS)}
        async with member(modern_broker, group, topic, group_remote_assignor="uniform") as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == PARTITIONS // 2)
            assert first.assignment | second.assignment == set(partitions(topic))
            await second.commit(dict.fromkeys(second.assignment, 1))
            await first.commit()
        await until(lambda: len(first.assignment) == PARTITIONS)
        committed = await first.committed(*partitions(topic))
        assert [place and place.offset for place in committed.values()] == [1] * PARTITIONS
    async with member(modern_broker, group, topic) as third:
        await write(modern_broker, TopicPartition(topic, 0), [b"more"])
        assert await values(third, 1) == {b"more"}


async def test_a_restarted_static_member_gets_its_partitions_back(modern_broker: BrokerUnderTest, group: str) -> None:
    topic = modern_broker.create()
    async with member(modern_broker, group, topic, group_instance_id="one") as first:
        async with member(modern_broker, group, topic, group_instance_id="two") as second:
            await until(lambda: len(first.assignment) == len(second.assignment) == PARTITIONS // 2)
            had, kept = second.assignment, first.assignment
        async with member(modern_broker, group, topic, group_instance_id="two") as second:
            await until(lambda: second.assignment == had)
            assert first.assignment == kept


async def test_a_pattern_is_matched_by_the_coordinator(modern_broker: BrokerUnderTest, group: str) -> None:
    prefix = f"p{uuid.uuid4().hex[:8]}"
    topic = modern_broker.create(prefix)
    async with member(modern_broker, group, BrokerPattern(f"{prefix}-.*")) as reader:
        await until(lambda: reader.assignment == set(partitions(topic)))
        other = modern_broker.create()
        await reader.subscribe(other)
        await until(lambda: reader.assignment == set(partitions(other)))


async def test_errors_of_the_coordinator_are_raised(modern_broker: BrokerUnderTest, group: str) -> None:
    topic = modern_broker.create()
    async with member(modern_broker, group, topic, group_remote_assignor="fair") as reader:
        with pytest.raises(BrokerError, match="UNSUPPORTED_ASSIGNOR"):
            await reader.getone(timeout=PATIENCE)
    async with member(modern_broker, group, BrokerPattern("(")) as reader:
        with pytest.raises(BrokerError, match="INVALID_REGULAR_EXPRESSION"):
            await reader.getone(timeout=PATIENCE)


async def test_auto_reads_with_either_protocol(broker: BrokerUnderTest, group: str) -> None:
    if broker.name == "kafka-0.8.2.2":
        pytest.skip("Kafka 0.8 has no group coordinator for members")
    topic = broker.create()
    await write(broker, TopicPartition(topic, 0), [b"x"])
    async with member(broker, group, topic, group_protocol="auto") as reader:
        assert await values(reader, 1) == {b"x"}
        await reader.commit()
