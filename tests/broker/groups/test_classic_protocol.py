"""Classic protocol over sockets: waiting joins, assignments; members join, leave, return, die."""

from __future__ import annotations

import random

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import join_group, leave_group, list_offsets
from tests.broker.grouped import ConsumerProtocolMember, RawMember, close, started
from tests.broker.raw import RawClient


async def test_members_receive_the_leaders_assignment(broker: Broker) -> None:
    one, other = await started(broker, 2)
    assert one.leads
    assert not other.leads
    assert one.joined is not None
    assert other.joined is not None
    assert {member.member_id for member in one.joined.members} == {one.member_id, other.member_id}
    assert other.joined.members == []
    assert (one.joined.protocol_type, one.joined.protocol_name) == ("consumer", "range")
    assert await one.beat() is await other.beat() is ErrorCode.NONE
    assert broker.faults.group("g").state == "Stable"
    await close(one, other)


@pytest.mark.parametrize("version", range(10))
async def test_every_version_of_every_request(broker: Broker, version: int) -> None:
    member = await RawMember.connect(broker)
    if version >= 4:
        member.send_join(version=version)
        assert await member.take_join(version) is ErrorCode.MEMBER_ID_REQUIRED
    member.send_join(version=version)
    assert await member.take_join(version) is ErrorCode.NONE
    member.send_sync({member.member_id: b"all"}, version=min(version, 5))
    assert await member.take_sync(min(version, 5)) == (ErrorCode.NONE, b"all")
    assert await member.beat(version=min(version, 4)) is ErrorCode.NONE
    assert await member.leave(version=min(version, 5)) is ErrorCode.NONE
    assert broker.faults.group("g").state == "Empty"
    await close(member)


async def test_a_member_that_waits_in_a_join_keeps_only_its_own_connection_waiting(
    broker: Broker, client: RawClient
) -> None:
    (one,) = await started(broker, 1)
    other = await RawMember.connect(broker)
    await other.get_id()
    other.send_join()
    asked = list_offsets.ListOffsetsRequest(replica_id=-1, topics=[])
    other.client.send(asked, 5)
    await client.ask(asked, 5)
    assert await one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    one.send_join()
    assert await one.take_join() is ErrorCode.NONE
    answer = await other.client.receive(join_group.JoinGroupResponse, 9, 2)
    assert answer.error_code == 0, "the join is answered before what was asked after it"
    await other.client.receive(list_offsets.ListOffsetsResponse, 5)
    await close(one, other)


async def test_a_member_that_does_not_rejoin_is_removed(broker: Broker) -> None:
    one, other = await started(broker, 2)
    one.send_join(rebalance_ms=50, protocols=(("range", b"changed"),))
    # `other` requested 20 s at its last join: the rebalance waits that long for it, unless it leaves
    assert await other.leave() is ErrorCode.NONE
    assert await one.take_join() is ErrorCode.NONE
    assert one.generation == 2
    assert list(broker.faults.group("g").members) == [one.member_id]
    await close(one, other)


async def test_the_rebalance_timeout_ends_a_wait() -> None:
    async with Broker(topics={"t": 1}, rng=random.Random(1)) as broker:
        one, other = await RawMember.connect(broker), await RawMember.connect(broker)
        await one.get_id()
        await other.get_id()
        for member in (one, other):
            member.send_join(rebalance_ms=50)
        for member in (one, other):
            assert await member.take_join() is ErrorCode.NONE
        one.send_join(rebalance_ms=50, protocols=(("range", b"changed"),))
        assert await one.take_join() is ErrorCode.NONE
        assert one.leads
        assert list(broker.faults.group("g").members) == [one.member_id]
        assert await other.beat() is ErrorCode.UNKNOWN_MEMBER_ID
        await close(one, other)


async def test_a_member_without_a_sync_is_removed(broker: Broker) -> None:
    one, other = await RawMember.connect(broker), await RawMember.connect(broker)
    for member in (one, other):
        await member.get_id()
    for member in (one, other):
        member.send_join(rebalance_ms=50)
    for member in (one, other):
        assert await member.take_join() is ErrorCode.NONE
    one.send_sync({one.member_id: b"all"})
    assert await one.take_sync() == (ErrorCode.NONE, b"all")
    await one_is_alone(one)
    await close(one, other)


async def one_is_alone(one: RawMember) -> None:
    """It joins again until it is the only member."""
    while True:
        one.send_join(rebalance_ms=50)
        assert await one.take_join() is ErrorCode.NONE
        assert one.joined is not None
        if len(one.joined.members) == 1:
            return


async def test_a_member_without_heartbeats_is_evicted() -> None:
    async with Broker(topics={"t": 1}, group_min_session_timeout_ms=1, rng=random.Random(1)) as broker:
        one, silent = await RawMember.connect(broker), await RawMember.connect(broker)
        await one.get_id()
        await silent.get_id()
        one.send_join(session_ms=60_000)
        silent.send_join(session_ms=30)
        assert await one.take_join() is await silent.take_join() is ErrorCode.NONE
        # the leader's assignment is missing: the silent member waits, which does not expire its session
        silent.send_sync()
        one.send_sync({one.member_id: b"1", silent.member_id: b"2"})
        assert await silent.take_sync() == (ErrorCode.NONE, b"2")
        await one.take_sync()
        one.send_join(session_ms=60_000)  # the leader: it waits for the other one, whose session ends
        assert await one.take_join() is ErrorCode.NONE
        assert list(broker.faults.group("g").members) == [one.member_id]
        await close(one, silent)


async def test_an_unused_member_id_does_not_delay_the_group() -> None:
    async with Broker(topics={"t": 1}, group_min_session_timeout_ms=1, rng=random.Random(1)) as broker:
        (one,) = await started(broker, 1)
        idle = await RawMember.connect(broker)
        idle.send_join(session_ms=30)
        assert await idle.take_join() is ErrorCode.MEMBER_ID_REQUIRED
        one.send_join(protocols=(("range", b"changed"),))
        assert await one.take_join() is ErrorCode.NONE
        idle.send_join()
        assert await idle.take_join() is ErrorCode.UNKNOWN_MEMBER_ID
        await close(one, idle)


async def test_a_group_without_members_is_forgotten() -> None:
    async with Broker(topics={"t": 1}, group_min_session_timeout_ms=1, rng=random.Random(1)) as broker:
        idle = await RawMember.connect(broker)
        idle.send_join(session_ms=1)
        assert await idle.take_join() is ErrorCode.MEMBER_ID_REQUIRED
        while broker.state.groups.ids():
            idle.member_id = ""
            assert await idle.beat(generation=0) is ErrorCode.UNKNOWN_MEMBER_ID
        await close(idle)


async def test_the_first_members_are_waited_for() -> None:
    async with Broker(topics={"t": 1}, group_initial_rebalance_delay_ms=60, rng=random.Random(1)) as broker:
        one, other = await RawMember.connect(broker), await RawMember.connect(broker)
        one.send_join(version=3)
        other.send_join(version=3)
        assert await one.take_join(3) is await other.take_join(3) is ErrorCode.NONE
        assert one.generation == other.generation == 1
        assert len(broker.faults.group("g").members) == 2
        await close(one, other)


async def test_invalid_joins_are_refused(broker: Broker) -> None:
    (one,) = await started(broker, 1)
    other = await RawMember.connect(broker)
    for faulty, code in (
        ({"session_ms": 10}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 10**8}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": (("other", b""),)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ):
        other.send_join(**faulty)
        assert await other.take_join() is code
    other.member_id = "unknown"
    other.send_join()
    assert await other.take_join() is ErrorCode.UNKNOWN_MEMBER_ID
    other.group = ""
    other.send_join()
    assert await other.take_join() is ErrorCode.INVALID_GROUP_ID
    assert await other.beat() is ErrorCode.INVALID_GROUP_ID
    await close(one, other)


async def test_a_group_has_a_largest_size() -> None:
    async with Broker(topics={"t": 1}, group_max_size=1, rng=random.Random(1)) as broker:
        (one,) = await started(broker, 1)
        other = await RawMember.connect(broker)
        other.send_join()
        assert await other.take_join() is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert await one.beat() is ErrorCode.NONE
        await close(one, other)


async def test_a_leader_that_joins_again_begins_a_rebalance_and_a_follower_does_not(broker: Broker) -> None:
    one, other = await started(broker, 2)
    other.send_join()
    assert await other.take_join() is ErrorCode.NONE
    assert other.generation == 1
    one.send_join()
    assert await other.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    other.send_join()
    assert await one.take_join() is await other.take_join() is ErrorCode.NONE
    assert one.generation == other.generation == 2
    # a response that was lost is sent again
    other.send_join()
    assert await other.take_join() is ErrorCode.NONE
    assert other.generation == 2
    await close(one, other)


async def test_members_that_wait_for_the_leader_learn_of_a_new_rebalance(broker: Broker) -> None:
    one, other = await started(broker, 2)
    for member in (one, other):
        member.send_join(protocols=(("range", b"changed"),))
    for member in (one, other):
        assert await member.take_join() is ErrorCode.NONE
    other.send_sync()
    assert await one.leave() is ErrorCode.NONE
    assert await other.take_sync() == (ErrorCode.REBALANCE_IN_PROGRESS, b"")
    other.send_join()
    assert await other.take_join() is ErrorCode.NONE
    assert other.leads
    await close(one, other)


# --- static members -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [5, 9])
async def test_a_static_member_returns_without_a_rebalance(broker: Broker, version: int) -> None:
    one, other = await started(broker, 2, static=True)
    old = one.member_id
    again = await RawMember.connect(broker, instance="i0")
    again.send_join(version=version)
    assert await again.take_join(version) is ErrorCode.NONE
    assert again.generation == 1
    assert again.member_id != old
    assert again.joined is not None
    if version == 9:
        assert again.leads
        assert again.joined.skip_assignment
        assert len(again.joined.members) == 2
    else:
        assert not again.leads, "it would assign again"
    again.send_sync()
    assert await again.take_sync() == (ErrorCode.NONE, b"part 0")
    assert await one.beat() is ErrorCode.FENCED_INSTANCE_ID
    assert await one.commit(3) is ErrorCode.FENCED_INSTANCE_ID
    assert await other.beat() is ErrorCode.NONE
    assert await again.beat() is ErrorCode.NONE
    await close(one, other, again)


async def test_a_static_member_that_waits_is_fenced_by_its_successor(broker: Broker) -> None:
    one, other = await started(broker, 2, static=True)
    other.send_join(protocols=(("range", b"changed"),))
    again = await RawMember.connect(broker, instance="i1")
    again.send_join()
    assert await other.take_join() is ErrorCode.FENCED_INSTANCE_ID
    one.send_join()
    assert await one.take_join() is await again.take_join() is ErrorCode.NONE
    await close(one, other, again)


async def test_a_tool_removes_static_members_by_their_instances(broker: Broker, client: RawClient) -> None:
    one, other = await started(broker, 2, static=True)
    leavers = [
        leave_group.MemberIdentity(member_id="", group_instance_id="i1", reason="because"),
        leave_group.MemberIdentity(member_id="", group_instance_id="none"),
        leave_group.MemberIdentity(member_id="wrong", group_instance_id="i0"),
    ]
    answer = await client.ask(leave_group.LeaveGroupRequest(group_id="g", members=leavers), 5)
    assert [member.error_code for member in answer.members] == [
        ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
    ]  # fmt: skip
    assert await other.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert await one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    request = leave_group.LeaveGroupRequest(group_id="none", members=leavers[:1])
    assert (await client.ask(request, 3)).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert (await client.ask(leave_group.LeaveGroupRequest(), 3)).error_code == ErrorCode.INVALID_GROUP_ID
    await close(one, other)


async def test_static_members_that_do_not_join_keep_their_place(broker: Broker) -> None:
    members = [await RawMember.connect(broker, instance=f"i{place}") for place in range(2)]
    for member in members:
        member.send_join(rebalance_ms=50)
    for member in members:
        assert await member.take_join() is ErrorCode.NONE
    (leader,) = (member for member in members if member.leads)
    for member in members:
        member.send_sync({leader.member_id: b"all"} if member.leads else None)
    for member in members:
        assert (await member.take_sync())[0] is ErrorCode.NONE
    leader.send_join(rebalance_ms=50)
    assert await leader.take_join() is ErrorCode.NONE
    assert len(broker.faults.group("g").members) == 2
    await close(*members)


# --- commits --------------------------------------------------------------------------------------------------------


async def test_only_members_of_this_generation_commit(broker: Broker, client: RawClient) -> None:
    one, other = await started(broker, 2)
    assert await one.commit(3) is ErrorCode.NONE
    assert await one.commit(3, epoch=0) is ErrorCode.ILLEGAL_GENERATION
    stranger = RawMember(client)
    assert await stranger.commit(4, epoch=-1) is ErrorCode.UNKNOWN_MEMBER_ID
    stranger.member_id = "unknown"
    assert await stranger.commit(4, epoch=1) is ErrorCode.UNKNOWN_MEMBER_ID
    stranger.group = "other"
    assert await stranger.commit(4, epoch=1) is ErrorCode.ILLEGAL_GENERATION
    # while the group rebalances, what was read before is still committed
    one.send_join(protocols=(("range", b"changed"),))
    assert await other.commit(5) is ErrorCode.NONE
    other.send_join()
    assert await one.take_join() is await other.take_join() is ErrorCode.NONE
    assert await other.commit(6) is ErrorCode.REBALANCE_IN_PROGRESS
    assert await other.commit(6, epoch=1) is ErrorCode.ILLEGAL_GENERATION
    await close(one, other)


async def test_a_commit_extends_the_session() -> None:
    async with Broker(topics={"t": 1}, group_min_session_timeout_ms=1, rng=random.Random(1)) as broker:
        one, watch = await RawMember.connect(broker), await RawMember.connect(broker, "watch")
        one.send_join(version=3, session_ms=1500)
        assert await one.take_join(3) is ErrorCode.NONE
        one.send_sync({one.member_id: b"all"}, version=2)
        assert await one.take_sync(2) == (ErrorCode.NONE, b"all")
        begun = anyio.current_time()
        while anyio.current_time() < begun + 2:
            # takes 100 ms, the session of the watching member; the other one's is longer than a pause of the machine
            watch.member_id = ""
            watch.send_join(session_ms=100)
            assert await watch.take_join() is ErrorCode.MEMBER_ID_REQUIRED
            watch.member_id = ""
            watch.send_join(version=3, session_ms=100, rebalance_ms=100)
            assert await watch.take_join(3) is ErrorCode.NONE
            assert await watch.leave() is ErrorCode.NONE
            assert await one.commit(3) is ErrorCode.NONE
        await close(one, watch)


async def test_names_that_no_record_can_hold_are_refused(broker: Broker) -> None:
    one = await RawMember.connect(broker, "g" * 32_767)
    one.send_join()
    assert await one.take_join() is ErrorCode.INVALID_GROUP_ID
    assert await one.commit(3, epoch=-1) is ErrorCode.INVALID_GROUP_ID
    one.group = "g"
    one.instance = "ü" * 16_383
    one.send_join()
    assert await one.take_join() is ErrorCode.INVALID_REQUEST
    one.instance = None
    one.send_join(protocols=(("p" * 32_767, b""),))
    assert await one.take_join() is ErrorCode.INVALID_REQUEST
    consumer = ConsumerProtocolMember(broker, one.client, "m" * 32_767)
    assert await consumer.beat(join=True) is ErrorCode.INVALID_REQUEST
    assert broker.state.groups.ids() == []
    await close(one)
