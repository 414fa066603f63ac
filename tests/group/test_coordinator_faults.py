"""Faults of the coordinator while its group works: no member loses a partition or a commit, or
leaves too late."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.errors import AuthorizationError
from aiokwire.producer import Producer
from aiokwire.testing import ApiKey, ErrorCode
from aiokwire.testing.plugin import kafka_broker
from aiokwire.types import TopicPartition
from tests.consumer.groups import RecordingListener, assigned, fill, member, t, until

__all__ = ["kafka_broker"]

ONE = TopicPartition("t", 0)
# The requests of a member, and those that open its connections.
REQUESTS = (
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
    """Return the committed offset of partition 0."""
    found = broker.state.offsets.of_group("g").get(ONE)
    return None if found is None else found.offset


@both
@pytest.mark.parametrize("handled", [False, True], ids=["not handled", "handled"])
async def test_a_commit_in_flight_succeeds_when_the_coordinator_moves(
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
async def test_a_commit_waits_for_a_coordinator_that_loads_the_group(kafka_broker: Broker, protocol: str) -> None:
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
async def test_a_node_that_accepts_connections_and_never_responds_does_not_stop_a_member(
    kafka_broker: Broker, protocol: str
) -> None:
    """Another node coordinates the group and leads the partitions now; only missing responses
    reveal it."""
    listener = RecordingListener()
    options = {"group_protocol": protocol, "enable_auto_commit": False, "request_timeout_ms": 200, "listener": listener}
    gone = kafka_broker.faults.coordinator("g")
    for partition in (0, 1):
        kafka_broker.faults.move_leader("t", partition, gone)
    await fill(kafka_broker, 2)
    async with member(kafka_broker, **options) as reader:
        await until(lambda: reader.assignment == t(0, 1))
        seen = await reader.getmany(20, timeout=5)
        silent = [kafka_broker.faults.on(api, node=gone, times=None).hold() for api in REQUESTS]
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


@both
async def test_a_coordinator_lookup_that_is_refused_is_reported(kafka_broker: Broker, protocol: str) -> None:
    """After a join the heartbeats alone look the coordinator up."""
    async with member(kafka_broker, group_protocol=protocol, enable_auto_commit=False) as reader:
        await fill(kafka_broker, 1, 1)
        assert (await reader.getone(timeout=5)).offset == 0
        refused = kafka_broker.faults.on(ApiKey.FIND_COORDINATOR, times=None).error(
            ErrorCode.GROUP_AUTHORIZATION_FAILED
        )
        kafka_broker.faults.move_coordinator("g", another(kafka_broker, kafka_broker.faults.coordinator("g")))
        with pytest.raises(AuthorizationError, match="GROUP_AUTHORIZATION_FAILED"):
            await reader.getone(timeout=5)
        refused.remove()
        assert (await reader.getone(timeout=5)).offset == 0


@both
async def test_a_member_closed_while_its_listener_handles_lost_partitions_leaves_the_group(
    kafka_broker: Broker, protocol: str
) -> None:
    """It has exceeded max_poll_interval_ms, and would leave the group when the listener returns."""
    called = anyio.Event()

    class Hangs(RecordingListener):
        async def lost(self, partitions: frozenset[TopicPartition]) -> None:
            if not called.is_set():
                called.set()
                await anyio.sleep_forever()

    await fill(kafka_broker, 1, 1)
    options = {"group_protocol": protocol, "listener": Hangs(), "max_poll_interval_ms": 100}
    async with member(kafka_broker, **options) as reader:
        await reader.getone(timeout=5)
        with anyio.fail_after(5):
            await called.wait()
        assert len(kafka_broker.faults.group("g").members) == 1
    assert kafka_broker.faults.group("g").state == "Empty"
