"""A coordinator that moves, loads or falls silent while its group works: nobody loses a partition or a commit."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.producer import Producer
from aiokwire.testing import ApiKey
from aiokwire.testing.plugin import kafka_broker
from aiokwire.types import TopicPartition
from tests.consumer.groups import RecordingListener, assigned, fill, member, t, until

__all__ = ["kafka_broker"]

ONE = TopicPartition("t", 0)
# What a member asks of nodes, and what its connections begin with.
ASKED = (
    ApiKey.API_VERSIONS,
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.HEARTBEAT,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.OFFSET_COMMIT,
    ApiKey.FETCH,
)
both = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 3, "topics": {"t": 2}, "auto_create_topics": False}


def another(broker: Broker, node: int) -> int:
    return next(each for each in broker.nodes if each != node)


def stored(broker: Broker) -> int | None:
    """What the broker keeps for partition 0."""
    found = broker.state.offsets.of_group("g").get(ONE)
    return None if found is None else found.offset


@both
@pytest.mark.parametrize("handled", [False, True], ids=["not handled", "handled"])
async def test_a_commit_that_is_on_its_way_when_the_coordinator_moves_ends_well(
    kafka_broker: Broker, protocol: str, *, handled: bool
) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, group_protocol=protocol, enable_auto_commit=False, listener=listener) as reader:
        await assigned(reader, 0, 1)
        held = kafka_broker.faults.on(ApiKey.OFFSET_COMMIT).hold(handled=handled)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reader.commit, {ONE: 3})
            await held.arrived()
            kafka_broker.faults.move_coordinator("g", another(kafka_broker, kafka_broker.faults.coordinator("g")))
            held.release()
        assert stored(kafka_broker) == 3
        assert listener.events == [("assigned", t(0, 1))]


@both
async def test_a_coordinator_that_loads_for_long_is_waited_for(kafka_broker: Broker, protocol: str) -> None:
    listener = RecordingListener()
    async with member(kafka_broker, group_protocol=protocol, enable_auto_commit=False, listener=listener) as reader:
        await assigned(reader, 0, 1)
        began = anyio.current_time()
        kafka_broker.faults.move_coordinator("g", kafka_broker.faults.coordinator("g"), load_seconds=0.3)
        kafka_broker.faults.move_coordinator(
            "g", another(kafka_broker, kafka_broker.faults.coordinator("g")), load_seconds=0.3
        )
        await reader.commit({ONE: 3})
        assert anyio.current_time() - began >= 0.3
        await reader.commit({ONE: 4})
        assert (stored(kafka_broker), listener.events) == (4, [("assigned", t(0, 1))])


@both
async def test_a_node_that_takes_connections_and_never_answers_stops_nobody_for_long(
    kafka_broker: Broker, protocol: str
) -> None:
    """It coordinated the group and led the partitions, which others do now; nothing but the silence tells."""
    listener = RecordingListener()
    options = {"group_protocol": protocol, "enable_auto_commit": False, "request_timeout_ms": 200, "listener": listener}
    gone = kafka_broker.faults.coordinator("g")
    for partition in (0, 1):
        kafka_broker.faults.move_leader("t", partition, gone)
    await fill(kafka_broker, 2)
    async with member(kafka_broker, **options) as reader:
        await until(lambda: reader.assignment == t(0, 1))
        seen = await reader.getmany(20, timeout=5)
        silent = [kafka_broker.faults.on(api, node=gone, times=None).hold() for api in ASKED]
        other = another(kafka_broker, gone)
        for partition in (0, 1):
            kafka_broker.faults.move_leader("t", partition, other)
        kafka_broker.faults.move_coordinator("g", other)
        async with Producer(kafka_broker.address(other)) as producer:
            for number in range(20):
                await producer.submit("t", b"%d" % number, partition=number % 2)
        with anyio.fail_after(8):
            while len(seen) < 40:
                seen += await reader.getmany(20, timeout=5)
            await reader.commit()
        assert (stored(kafka_broker), listener.events) == (20, [("assigned", t(0, 1))])
        for rule in silent:
            rule.release()
