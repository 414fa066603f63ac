"""`Consumer.assigned` waits for the first assignment; its error names the reason for the wait."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.errors import BrokerError, ClosedError, RequestTimedOut
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker
from aiokwire.types import TopicPartition
from tests.consumer.groups import QUICK, member, t, until

__all__ = ["kafka_broker"]


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {
        "topics": {"t": 2},
        "auto_create_topics": False,
        "group_consumer_heartbeat_interval_ms": 20,
        "group_consumer_min_heartbeat_interval_ms": 20,
    }


@pytest.mark.parametrize("protocol", ["classic", "consumer", "auto"])
async def test_a_member_waits_for_its_first_assignment(kafka_broker: Broker, protocol: str) -> None:
    async with member(kafka_broker, group_protocol=protocol) as first:
        assert await first.assigned(timeout=5) == t(0, 1)
        assert await first.assigned(timeout=0) == t(0, 1)
        async with member(kafka_broker, group_protocol=protocol) as second:
            assert await second.assigned(timeout=5) <= t(0, 1)


async def test_without_a_group_assigned_returns_the_partitions_that_are_read(kafka_broker: Broker) -> None:
    servers = {"bootstrap_servers": kafka_broker.bootstrap_servers, **QUICK}
    async with Consumer("t", **servers) as reader:
        assert await reader.assigned(timeout=5) == t(0, 1)
    async with Consumer(partitions=[TopicPartition("t", 1)], **servers) as reader:
        assert await reader.assigned(timeout=0) == t(1)
    async with Consumer(**servers) as reader:
        with pytest.raises(RequestTimedOut, match=r"within 0\.0 s: nothing is subscribed to or assigned"):
            await reader.assigned(timeout=0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.assign, [TopicPartition("t", 0)])
            assert await reader.assigned(timeout=5) == t(0)


async def test_the_error_names_the_reason_for_the_wait(kafka_broker: Broker) -> None:
    rule = kafka_broker.faults.on(ApiKey.FIND_COORDINATOR, times=None).error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    async with member(kafka_broker) as reader:
        with pytest.raises(RequestTimedOut, match=r"within 0\.1 s: the coordinator of group 'g' was not found"):
            await reader.assigned(timeout=0.1)
    rule.remove()
    async with member(kafka_broker, re.compile("none-.*")) as reader:
        await until(lambda: (group := reader.health().group) is not None and group.coordinator is not None)
        with pytest.raises(RequestTimedOut, match="group 'g': no topic matches the pattern"):
            await reader.assigned(timeout=0.3)
        await kafka_broker.create_topic("none-1", 1)
        assert await reader.assigned(timeout=5) == {TopicPartition("none-1", 0)}


async def test_the_error_distinguishes_a_surplus_member_from_a_rebalance(kafka_broker: Broker) -> None:
    async with member(kafka_broker) as first, member(kafka_broker) as second:
        await first.assigned(timeout=5)
        await second.assigned(timeout=5)
        async with member(kafka_broker) as third:
            await until(lambda: (group := third.health().group) is not None and group.state == "STABLE")
            with pytest.raises(RequestTimedOut, match="'g' assigned no partition to this member: it has as many"):
                await third.assigned(timeout=0.5)
    kafka_broker.faults.on(ApiKey.JOIN_GROUP, times=None).error(ErrorCode.REBALANCE_IN_PROGRESS)
    async with member(kafka_broker) as reader:
        await until(lambda: (group := reader.health().group) is not None and group.state == "PREPARING_REBALANCE")
        with pytest.raises(RequestTimedOut, match=r"has been rebalancing for .* s \(state PREPARING_REBALANCE\)"):
            await reader.assigned(timeout=0.3)


async def test_an_error_of_the_join_is_raised_and_the_next_call_joins(
    kafka_broker: Broker,
) -> None:
    kafka_broker.faults.on(ApiKey.JOIN_GROUP).error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    async with member(kafka_broker) as reader:
        with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
            await reader.assigned(timeout=5)
        assert await reader.assigned(timeout=5) == t(0, 1)
    with pytest.raises(ClosedError):
        await reader.assigned(timeout=5)
