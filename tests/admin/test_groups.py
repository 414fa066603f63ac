"""Groups in the admin client, on the embedded broker, with both protocols."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from aiokwire.admin import Admin, GroupMember, ResetTo
from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument, InvalidRequestError, ProtocolViolation, StaleMetadataError
from aiokwire.producer import Producer
from aiokwire.protocol import ApiKey, encode_embedded
from aiokwire.protocol.messages import consumer_protocol_assignment as assignments
from aiokwire.protocol.messages import consumer_protocol_subscription as subscriptions
from aiokwire.protocol.messages import describe_groups as describe
from aiokwire.types import OffsetAndMetadata, TopicPartition
from tests.broker.grouped import ConsumerProtocolMember, RawMember, close, settle

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
GONE = TopicPartition("gone", 0)
RECORDS = 10


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(topics={"t": 2}, auto_create_topics=False, nodes=2) as broker:
        async with Producer(broker.bootstrap_servers) as producer:
            for index in range(RECORDS):
                await producer.send("t", b"%d" % index, partition=0, timestamp=1000 + index)
        yield broker


@pytest.fixture
async def admin(broker: Broker) -> AsyncIterator[Admin]:
    async with Admin(broker.bootstrap_servers, retry_backoff_ms=5) as admin:
        yield admin


SUBSCRIPTION = encode_embedded(subscriptions.ConsumerProtocolSubscription(topics=["t"], rack_id="r1"), 3)
ASSIGNMENT = encode_embedded(
    assignments.ConsumerProtocolAssignment(
        assigned_partitions=[assignments.TopicPartition(topic="t", partitions=[1, 0])]
    ),
    1,
)


async def classic_member(
    broker: Broker, group: str = "g", *, assignment: bytes = ASSIGNMENT, instance: str | None = None
) -> RawMember:
    """A member that has all partitions of "t"."""
    member = await RawMember.connect(broker, group, instance=instance, node=broker.faults.coordinator(group))
    protocols = [("range", SUBSCRIPTION)]
    while member.generation < 0:
        member.send_join(protocols=protocols)
        await member.take_join()
    member.send_sync({member.member_id: assignment})
    await member.take_sync()
    return member


async def consumer_protocol_member(broker: Broker, group: str = "g") -> ConsumerProtocolMember:
    client = (await RawMember.connect(broker, node=broker.faults.coordinator(group))).client
    member = ConsumerProtocolMember(broker, client, "consumer", group)
    assert await member.beat(join=True) is ErrorCode.NONE
    await settle(member)
    return member


# --- what there is ----------------------------------------------------------------------------------------------------


async def test_groups_of_all_brokers_are_listed_by_name(broker: Broker, admin: Admin) -> None:
    names = [f"g{number}" for number in range(6)]
    assert {broker.faults.coordinator(name) for name in names} == set(broker.nodes)
    for name in names:
        await admin.alter_group_offsets(name, {T0: 1})
    member = await classic_member(broker, "member")
    listed = await admin.list_groups()
    assert [one.group_id for one in listed] == [*names, "member"]
    assert {one.group_id: one.coordinator for one in listed} == {
        name: broker.faults.coordinator(name) for name in [*names, "member"]
    }
    assert (listed[-1].state, listed[-1].type, listed[-1].protocol_type) == ("Stable", "classic", "consumer")
    assert [one.group_id for one in await admin.list_groups(states=["Stable"])] == ["member"]
    assert await admin.list_groups(types=["consumer"]) == []
    await close(member)


async def test_listing_retries_while_a_broker_loads_its_groups(broker: Broker, admin: Admin) -> None:
    await admin.alter_group_offsets("g", {T0: 1})
    rule = broker.faults.on(ApiKey.LIST_GROUPS, times=3).error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert [one.group_id for one in await admin.list_groups()] == ["g"]
    await rule.hit(3)


async def test_a_classic_group_is_described_with_the_assignments_of_its_members(broker: Broker, admin: Admin) -> None:
    member = await classic_member(broker, instance="i")
    described = await admin.describe_group("g")
    assert (described.type, described.state, described.assignor, described.epoch) == (
        "classic",
        "Stable",
        "range",
        None,
    )
    assert described.coordinator == broker.faults.coordinator("g")
    assert described.members == (
        GroupMember(member.member_id, "i", "raw", "/127.0.0.1", (T0, T1), None, ("t",), None, None, "r1"),
    )
    await close(member)


async def test_a_group_of_the_consumer_protocol_is_described_with_its_targets(broker: Broker, admin: Admin) -> None:
    member = await consumer_protocol_member(broker)
    described = await admin.describe_group("g")
    assert (described.type, described.state, described.assignor) == ("consumer", "Stable", "uniform")
    assert described.epoch == described.assignment_epoch == member.epoch
    (one,) = described.members
    assert (one.assignment, one.target, one.topics, one.epoch) == ((T0, T1), (T0, T1), ("t",), member.epoch)
    await close(member)


async def test_the_error_of_an_invalid_assignment_names_its_member(broker: Broker, admin: Admin) -> None:
    member = await classic_member(broker, assignment=b"\x00\x01\xff\xff\xff")
    with pytest.raises(ProtocolViolation, match=member.member_id):
        await admin.describe_group("g")
    await close(member)


@pytest.mark.parametrize("old", [True, False], ids=["Dead", "not found"])
async def test_a_group_that_does_not_exist_fails_only_its_own_result(old: bool) -> None:
    async with Broker(topics={"t": 1}) as broker, Admin(broker.bootstrap_servers) as admin:
        await admin.alter_group_offsets("g", {T0: 0})
        if old:  # before 3.8

            def dead(_request: object) -> describe.DescribeGroupsResponse:
                return describe.DescribeGroupsResponse(
                    groups=[describe.DescribedGroup(group_id="none", group_state="Dead")]
                )

            broker.faults.on(describe.DescribeGroupsRequest, when=lambda request: request.groups == ["none"]).respond(
                dead
            )
        results = await admin.describe_groups(["g", "none"])
        assert results["g"].state == "Empty"
        assert results.errors["none"].code is ErrorCode.GROUP_ID_NOT_FOUND
        with pytest.raises(InvalidRequestError, match=r"cannot describe group 'none': .*list the groups"):
            await admin.describe_group("none")


# --- offsets ----------------------------------------------------------------------------------------------------------


async def test_offsets_are_committed_and_read_with_their_metadata(admin: Admin) -> None:
    assert await admin.list_group_offsets("g") == {}
    await admin.alter_group_offsets("g", {T1: 0, T0: OffsetAndMetadata(4, "by hand")})
    offsets = await admin.list_group_offsets("g")
    assert list(offsets) == [T0, T1]
    assert (offsets[T0].offset, offsets[T0].metadata, offsets[T1].offset) == (4, "by hand", 0)
    with pytest.raises(InvalidArgument):
        await admin.alter_group_offsets("g", {T0: -1})


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_offsets_of_a_group_with_members_are_not_changed(broker: Broker, admin: Admin, protocol: str) -> None:
    member = await (classic_member(broker) if protocol == "classic" else consumer_protocol_member(broker))
    with pytest.raises(InvalidRequestError) as caught:
        await admin.alter_group_offsets("g", {T0: 1})
    assert caught.value.code is ErrorCode.NON_EMPTY_GROUP
    with pytest.raises(InvalidRequestError):
        await admin.reset_group_offsets("g", ResetTo.earliest(), ["t"])
    await close(member)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_the_lag_covers_committed_and_assigned_partitions(broker: Broker, admin: Admin, protocol: str) -> None:
    member = await (classic_member(broker) if protocol == "classic" else consumer_protocol_member(broker))
    assert await member.commit(4) is ErrorCode.NONE
    lag = await admin.group_lag("g")
    assert (lag[T0].end, lag[T0].lag) == (RECORDS, RECORDS - 4)
    assert (lag[T1].committed, lag[T1].end, lag[T1].lag) == (None, 0, None)
    await close(member)


async def test_a_deleted_topic_has_no_lag_and_is_left_out_of_resets(admin: Admin) -> None:
    await admin.create_topic("gone", 1)
    await admin.alter_group_offsets("g", {T0: 1, GONE: 0})
    await admin.delete_topic("gone")
    assert list(await admin.group_lag("g", timeout=5)) == [T0]
    assert list(await admin.reset_group_offsets("g", ResetTo.earliest(), timeout=5)) == [T0]


async def test_reading_stable_offsets_waits_for_an_open_transaction(broker: Broker, admin: Admin) -> None:
    await admin.alter_group_offsets("g", {T0: 1})
    rule = broker.faults.on(ApiKey.OFFSET_FETCH, times=2).error(ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert (await admin.list_group_offsets("g", require_stable=True))[T0].offset == 1
    await rule.hit(2)


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        (ResetTo.earliest(), 0),
        (ResetTo.latest(), RECORDS),
        (ResetTo.current(), 5),
        (ResetTo.time(1003), 3),
        (ResetTo.time(99999), RECORDS),
        (ResetTo.shift(2), 7),
        (ResetTo.shift(-2), 3),
        (ResetTo.shift(100), RECORDS),
        (ResetTo.shift(-100), 0),
        (ResetTo.to_offsets({T0: 8}), 8),
        (ResetTo.offset(2), 2),
    ],
    ids=lambda value: f"{value.kind.name} {value.number}" if isinstance(value, ResetTo) else None,
)
async def test_a_group_is_reset_to_each_kind_of_target(admin: Admin, to: ResetTo, expected: int) -> None:
    await admin.alter_group_offsets("g", {T0: 5})
    changes = await admin.reset_group_offsets("g", to, validate_only=True)
    before, after = changes[T0]
    assert before is not None
    assert (before.offset, after) == (5, expected)
    assert (await admin.list_group_offsets("g"))[T0].offset == 5, "only planned"
    assert await admin.reset_group_offsets("g", to, [T0]) == changes
    assert (await admin.list_group_offsets("g"))[T0].offset == expected


async def test_a_reset_creates_a_group_when_topics_are_named(admin: Admin) -> None:
    with pytest.raises(InvalidArgument, match="name topics"):
        await admin.reset_group_offsets("new", ResetTo.latest())
    changes = await admin.reset_group_offsets("new", ResetTo.latest(), ["t"])
    assert {tp: change.after for tp, change in changes.items()} == {T0: RECORDS, T1: 0}
    with pytest.raises(InvalidArgument, match="no committed offset to shift"):
        await admin.reset_group_offsets("other", ResetTo.shift(1), ["t"])
    with pytest.raises(InvalidArgument, match="no offset for this partition"):
        await admin.reset_group_offsets("other", ResetTo.to_offsets({T0: 1}), ["t"])
    with pytest.raises(StaleMetadataError):
        await admin.reset_group_offsets("new", ResetTo.latest(), ["nowhere"], timeout=0.1)


async def test_committed_offsets_are_deleted_except_those_of_subscribed_topics(broker: Broker, admin: Admin) -> None:
    await admin.alter_group_offsets("g", {T0: 1, T1: 0})
    (await admin.delete_group_offsets("g", [T0])).check()
    assert list(await admin.list_group_offsets("g")) == [T1]
    member = await classic_member(broker)
    results = await admin.delete_group_offsets("g", [T1])
    assert results.errors[T1].code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    with pytest.raises(BrokerError, match="group 'unknown'"):
        await admin.delete_group_offsets("unknown", [T1])
    await close(member)


# --- groups and members -----------------------------------------------------------------------------------------------


async def test_groups_without_members_are_deleted(broker: Broker, admin: Admin) -> None:
    member = await classic_member(broker, "busy")
    await admin.alter_group_offsets("idle", {T0: 1})
    results = await admin.delete_groups(["idle", "busy", "none"])
    assert list(results.succeeded) == ["idle"]
    codes = {name: error.code for name, error in results.errors.items()}
    assert codes == {"busy": ErrorCode.NON_EMPTY_GROUP, "none": ErrorCode.GROUP_ID_NOT_FOUND}
    assert [one.group_id for one in await admin.list_groups()] == ["busy"]
    with pytest.raises(InvalidRequestError):
        await admin.delete_group("busy")
    await close(member)


async def test_members_are_removed_by_id_by_instance_or_all(broker: Broker, admin: Admin) -> None:
    member = await classic_member(broker, instance="i")
    results = await admin.remove_members("g", member_ids=["m9"], instance_ids=["i9"])
    assert set(results.errors) == {"m9", "instance i9"}
    (await admin.remove_members("g", instance_ids=["i"])).check()
    assert (await admin.describe_group("g")).members == ()
    other = await classic_member(broker)
    assert list((await admin.remove_members("g", reason="a test")).check()) == [other.member_id]
    assert (await admin.describe_group("g")).state == "Empty"
    assert await admin.remove_members("g") == {}
    await close(member, other)


async def test_calls_follow_a_coordinator_that_has_moved(broker: Broker, admin: Admin) -> None:
    await admin.alter_group_offsets("g", {T0: 3})
    other = next(node for node in broker.nodes if node != broker.faults.coordinator("g"))
    broker.faults.move_coordinator("g", other)
    assert (await admin.list_group_offsets("g"))[T0].offset == 3
    assert (await admin.describe_group("g")).coordinator == other
