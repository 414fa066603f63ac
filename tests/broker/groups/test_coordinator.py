"""Groups across restarts, nodes that take groups over, expiring offsets; and what tests control."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import anyio
import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage, Storage
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ConfigurationError
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    find_coordinator,
    join_group,
    list_groups,
    offset_fetch,
)
from tests.broker.grouped import ConsumerProtocolMember, RawMember, close, settle, started
from tests.broker.raw import RawClient
from tests.broker.transactional import committed_offset, kill

DAY_MS = 86_400_000


async def consumer_protocol_member(broker: Broker, name: str, **options: object) -> ConsumerProtocolMember:
    return ConsumerProtocolMember(broker, await RawClient.connect(broker), name, **options)  # type: ignore[arg-type]  # any of its


# --- restarts -------------------------------------------------------------------------------------------------------


async def test_a_classic_group_survives_a_kill(storage: Storage) -> None:
    async with Broker(storage=storage, topics={"t": 1}, offsets_topic_num_partitions=2) as broker:
        members = await started(broker, 2, static=True)
        assert await members[0].commit(5) is ErrorCode.NONE
        await close(*members)
        await kill(broker)
    async with Broker(storage=storage) as broker:
        assert broker.faults.group("g").state == "Stable"
        for place, member in enumerate(members):
            member.client = await RawClient.connect(broker)
            assert await member.beat() is ErrorCode.NONE
            member.send_sync()
            assert await member.take_sync() == (ErrorCode.NONE, b"part %d" % place)
        assert await members[0].commit(6) is ErrorCode.NONE
        assert await members[0].leave() is await members[1].leave() is ErrorCode.NONE
        await close(*members)
        await kill(broker)
    async with Broker(storage=storage) as broker:
        assert (broker.faults.group("g").state, broker.faults.group("g").generation) == ("Empty", 2)
        client = await RawClient.connect(broker)
        assert await committed_offset(client, "g", "t") == (0, 6)
        await client.close()


async def test_members_that_do_not_return_after_a_restart_are_evicted() -> None:
    storage = MemoryStorage()
    async with Broker(storage=storage, topics={"t": 1}, group_min_session_timeout_ms=1) as broker:
        one = await RawMember.connect(broker)
        one.send_join(version=3, session_ms=50)
        assert await one.take_join(3) is ErrorCode.NONE
        one.send_sync({one.member_id: b"all"}, version=2)
        await one.take_sync(2)
        await close(one)
    async with Broker(storage=storage) as broker:
        assert broker.faults.group("g").members
        other = await RawMember.connect(broker)
        other.send_join(version=3)
        assert await other.take_join(3) is ErrorCode.NONE
        assert list(broker.faults.group("g").members) == [other.member_id]
        await close(other)


async def test_a_consumer_group_survives_a_kill(storage: Storage) -> None:
    async with Broker(storage=storage, topics={"t": 4}, offsets_topic_num_partitions=2) as broker:
        members = [await consumer_protocol_member(broker, name, regex="t.*", topics=None) for name in "ab"]
        for one in members:
            assert await one.beat(join=True) is ErrorCode.NONE
        await settle(*members)
        was = broker.faults.group("g")
        await close(*members)
        await kill(broker)
    async with Broker(storage=storage) as broker:
        assert broker.faults.group("g") == was
        before = [(one.epoch, one.owned) for one in members]
        for one in members:
            one.broker, one.client = broker, await RawClient.connect(broker)
        await settle(*members)
        assert [(one.epoch, one.owned) for one in members] == before, "no rebalance"
        assert await members[0].leave() is ErrorCode.NONE
        await settle(members[1])
        assert members[1].owned == {"t": [0, 1, 2, 3]}
        assert await members[1].leave() is ErrorCode.NONE
        await close(*members)
    async with Broker(storage=storage) as broker:
        assert broker.faults.group("g").state == "Empty"
        broker.state.groups.expire(wall_ms() + 8 * DAY_MS)
        assert broker.state.groups.ids() == []
    async with Broker(storage=storage) as broker:
        assert broker.state.groups.ids() == []


async def test_a_deleted_group_stays_deleted(storage: Storage) -> None:
    async with Broker(storage=storage, topics={"t": 1}) as broker:
        (one,) = await started(broker, 1)
        assert await one.commit(4) is ErrorCode.NONE
        assert await one.leave() is ErrorCode.NONE
        answer = await one.client.ask(delete_groups.DeleteGroupsRequest(groups_names=["g", "none"]), 2)
        assert [row.error_code for row in answer.results] == [0, ErrorCode.GROUP_ID_NOT_FOUND]
        await close(one)
        await kill(broker)
    async with Broker(storage=storage) as broker:
        assert broker.state.groups.ids() == []


# --- several nodes --------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Broker]:
    """Three nodes; node 1 coordinates the group."""
    async with Broker(nodes=3, topics={"t": 4}, rng=random.Random(7), journal=100) as running:
        running.faults.move_coordinator("g", 1)
        yield running


async def test_only_the_coordinator_responds(cluster: Broker) -> None:
    asked = await RawClient.connect(cluster, 2)
    answer = await asked.ask(find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    assert answer.coordinators[0].node_id == 1
    stray = RawMember(asked)
    stray.send_join()
    assert await stray.take_join() is ErrorCode.NOT_COORDINATOR
    assert await stray.beat() is await stray.leave() is ErrorCode.NOT_COORDINATOR
    stray.send_sync()
    assert (await stray.take_sync())[0] is ErrorCode.NOT_COORDINATOR
    assert await ConsumerProtocolMember(cluster, asked, "a").beat(join=True) is ErrorCode.NOT_COORDINATOR
    described = await asked.ask(describe_groups.DescribeGroupsRequest(groups=["g"]), 5)
    assert described.groups[0].error_code == ErrorCode.NOT_COORDINATOR
    consumer_described = await asked.ask(consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["g"]), 0)
    assert consumer_described.groups[0].error_code == ErrorCode.NOT_COORDINATOR
    deleted = await asked.ask(delete_groups.DeleteGroupsRequest(groups_names=["g"]), 2)
    assert deleted.results[0].error_code == ErrorCode.NOT_COORDINATOR
    await asked.close()


async def test_a_group_moves_with_its_members_to_another_node(cluster: Broker) -> None:
    one, other = await started(cluster, 2, static=True)
    other.send_join(protocols=(("range", b"changed"),))
    assert await one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    cluster.faults.move_coordinator("g", 2)
    assert await other.take_join() is ErrorCode.NOT_COORDINATOR
    assert await one.beat() is ErrorCode.NOT_COORDINATOR
    for member in (one, other):
        await member.client.close()
        member.client = await RawClient.connect(cluster, 2)
        assert await member.beat() is ErrorCode.NONE, "what was logged is what is known: no rebalance"
    listed = {}
    for node in cluster.nodes:
        client = await RawClient.connect(cluster, node)
        listed[node] = [row.group_id for row in (await client.ask(list_groups.ListGroupsRequest(), 5)).groups]
        await client.close()
    assert listed == {1: [], 2: ["g"], 3: []}
    await close(one, other)


async def test_a_new_coordinator_may_take_its_time_to_load(cluster: Broker) -> None:
    (one,) = await started(cluster, 1)
    cluster.faults.move_coordinator("g", 2, load_seconds=0.05)
    await one.client.close()
    one.client = await RawClient.connect(cluster, 2)
    assert await one.beat() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert await one.commit(3) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    groups = [offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=None)]
    answer = await one.client.ask(offset_fetch.OffsetFetchRequest(groups=groups), 8)
    assert answer.groups[0].error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for version, place in ((1, "partition"), (7, "whole")):
        asked = offset_fetch.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        old = await one.client.ask(offset_fetch.OffsetFetchRequest(group_id="g", topics=[asked]), version)
        code = old.error_code if place == "whole" else old.topics[0].partitions[0].error_code
        assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    with anyio.fail_after(5):
        while await one.beat() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
    assert await one.beat() is ErrorCode.NONE
    await close(one)


async def test_a_consumer_group_moves_too(cluster: Broker) -> None:
    one = await consumer_protocol_member(cluster, "a")
    assert await one.beat(join=True) is ErrorCode.NONE
    cluster.faults.move_coordinator("g", 3)
    assert await one.beat() is ErrorCode.NOT_COORDINATOR
    await one.client.close()
    one.client = await RawClient.connect(cluster, 3)
    epoch, had = one.epoch, one.owned
    with anyio.fail_after(5):
        while (code := await one.beat()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
    assert code is ErrorCode.NONE
    assert (one.epoch, one.owned) == (epoch, had)
    await close(one)


async def test_a_node_that_stops_leaves_its_groups_to_others(cluster: Broker) -> None:
    (one,) = await started(cluster, 1)
    await cluster.faults.stop_node(1)
    successor = cluster.faults.coordinator("g")
    assert successor != 1
    await one.client.close()
    one.client = await RawClient.connect(cluster, successor)
    with anyio.fail_after(5):
        while (code := await one.beat()) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
    assert code is ErrorCode.NONE
    await cluster.faults.start_node(1)
    assert await one.beat() is ErrorCode.NOT_COORDINATOR
    await close(one)


# --- expiry ---------------------------------------------------------------------------------------------------------


async def test_offsets_of_a_group_without_members_expire(broker: Broker) -> None:
    (one,) = await started(broker, 1)
    assert await one.commit(3) is ErrorCode.NONE
    groups, now = broker.state.groups, wall_ms()
    assert groups.expire(now + 8 * DAY_MS) == 0, "the topics of its member are unknown"
    assert await one.leave() is ErrorCode.NONE
    assert groups.expire(now + 6 * DAY_MS) == 0
    assert groups.expire(now + 8 * DAY_MS) == 1
    assert groups.ids() == []
    await close(one)


async def test_offsets_of_topics_that_members_read_do_not_expire(broker: Broker) -> None:
    await broker.create_topic("u", 1)
    one = await consumer_protocol_member(broker, "a", topics=["t", "u"])
    assert await one.beat(join=True) is ErrorCode.NONE
    assert await one.commit(3) is ErrorCode.NONE
    now = wall_ms()
    assert broker.state.groups.expire(now + 8 * DAY_MS) == 0
    one.topics = ["u"]
    assert await one.beat(full=True) is ErrorCode.NONE
    assert broker.state.groups.expire(now + 8 * DAY_MS) == 1
    assert broker.faults.group("g").members, "the group stays"
    await close(one)


async def test_offsets_of_a_deleted_topic_go_with_it(broker: Broker, client: RawClient) -> None:
    plain = RawMember(client)
    assert await plain.commit(3, epoch=-1) is ErrorCode.NONE
    await broker.delete_topic("t")
    await broker.create_topic("t", 1)
    assert await committed_offset(client, "g", "t") == (0, -1)
    assert broker.state.groups.ids() == []


# --- what tests control ---------------------------------------------------------------------------------------------


async def test_a_test_sees_evicts_and_rebalances(broker: Broker) -> None:
    one, other = await started(broker, 2)
    status = broker.faults.group("g")
    assert (status.protocol, status.state, status.generation, status.leader) == ("classic", "Stable", 1, one.member_id)
    assert dict(status.members) == {one.member_id: None, other.member_id: None}
    broker.faults.rebalance("g")
    assert await one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    broker.faults.evict("g", other.member_id)
    assert await other.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    one.send_join()
    assert await one.take_join() is ErrorCode.NONE
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        broker.faults.group("none")
    with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
        broker.faults.evict("g", "none")
    assert await one.leave() is ErrorCode.NONE
    with pytest.raises(BrokerError, match="no members"):
        broker.faults.rebalance("g")
    with pytest.raises(ConfigurationError, match="load_seconds"):
        broker.faults.move_coordinator("g", 1, load_seconds=-1)
    await close(one, other)


async def test_a_test_sees_evicts_and_rebalances_the_consumer_protocol(broker: Broker) -> None:
    members = [await consumer_protocol_member(broker, name) for name in "ab"]
    for one in members:
        assert await one.beat(join=True) is ErrorCode.NONE
    await settle(*members)
    epoch = members[0].epoch
    broker.faults.rebalance("g")
    assert broker.faults.group("g").state == "Assigning"
    await settle(*members)
    assert members[0].epoch == epoch + 1
    broker.faults.evict("g", "b")
    await settle(members[0])
    assert members[0].owned == {"t": [0, 1]}
    assert broker.faults.group("g").protocol == "consumer"
    await close(*members)


FAULTY = [
    ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT,
]  # fmt: skip


@pytest.mark.parametrize("api", FAULTY, ids=lambda api: api.name)
async def test_rules_apply_to_groups(broker: Broker, client: RawClient, api: ApiKey) -> None:
    broker.faults.on(api).error(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = RawMember(client)
    if api is ApiKey.JOIN_GROUP:
        member.send_join()
        code = await member.take_join()
    elif api is ApiKey.SYNC_GROUP:
        member.send_sync()
        code, _ = await member.take_sync()
    elif api is ApiKey.CONSUMER_GROUP_HEARTBEAT:
        code = await ConsumerProtocolMember(broker, client, "a").beat(join=True)
    else:
        code = await (member.beat() if api is ApiKey.HEARTBEAT else member.leave())
    assert code is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", [5, 9])
async def test_a_rule_refuses_a_join_in_old_and_new_versions(broker: Broker, client: RawClient, version: int) -> None:
    broker.faults.on(join_group.JoinGroupRequest).error(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    member = RawMember(client)
    member.send_join(version=version)
    assert await member.take_join(version) is ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_a_join_may_be_held_and_is_in_the_journal(cluster: Broker) -> None:
    member = await RawMember.connect(cluster)
    hold = cluster.faults.on(ApiKey.JOIN_GROUP, when=lambda request: request.group_id == "g").hold()
    member.send_join(version=3)
    await hold.arrived()
    hold.release()
    assert await member.take_join(3) is ErrorCode.NONE
    (request,) = cluster.journal.requests(join_group.JoinGroupRequest)
    assert request.protocols[0].name == "range"
    await close(member)


async def test_a_rebalance_does_not_wait_for_a_disconnected_member(broker: Broker) -> None:
    (one,) = await started(broker, 1)
    gone = await RawMember.connect(broker)
    await gone.get_id()
    gone.send_join()
    assert await one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    await close(gone)
    one.send_join()
    assert await one.take_join() is ErrorCode.NONE
    assert len(broker.faults.group("g").members) == 2, "its session has not ended"
    broker.faults.evict("g", gone.member_id)
    await close(one)
