"""Tool requests: DescribeGroups, ListGroups, DeleteGroups, OffsetDelete, ConsumerGroupDescribe."""

from __future__ import annotations

import pytest

from aiokwire.broker import Broker
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import encode_embedded
from aiokwire.protocol.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    list_groups,
    offset_delete,
)
from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from tests.broker.grouped import ConsumerProtocolMember, RawMember, close, started
from tests.broker.raw import RawClient
from tests.broker.transactional import RawProducer, committed_offset


@pytest.mark.parametrize("version", range(7))
async def test_every_version_describes(broker: Broker, client: RawClient, version: int) -> None:
    one, other = await started(broker, 2, static=True)
    request = describe_groups.DescribeGroupsRequest(groups=["g", "none"], include_authorized_operations=version >= 3)
    known, unknown = (await client.ask(request, version)).groups
    assert (known.group_state, known.protocol_type, known.protocol_data) == ("Stable", "consumer", "range")
    first, second = known.members
    assert (first.member_id, first.client_id, first.client_host) == (one.member_id, "raw", "/127.0.0.1")
    assert (bytes(first.member_metadata), bytes(second.member_assignment)) == (b"topics", b"part 1")
    assert second.group_instance_id == ("i1" if version >= 4 else None)
    assert known.authorized_operations == (3400 if version >= 3 else -(2**31))
    assert unknown.group_state == "Dead"
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)
    one.send_join(protocols=(("range", b"changed"),))
    assert await other.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    (known, _) = (await client.ask(request, version)).groups
    assert (known.group_state, known.protocol_data) == ("PreparingRebalance", "")
    assert bytes(known.members[0].member_metadata) == b""
    await close(one, other)


@pytest.mark.parametrize("version", range(6))
async def test_every_version_lists(broker: Broker, client: RawClient, version: int) -> None:
    (classic,) = await started(broker, 1, "classic")
    plain = RawMember(client, "plain")
    assert await plain.commit(3, epoch=-1) is ErrorCode.NONE
    consumer = ConsumerProtocolMember(broker, await RawClient.connect(broker), "a", "consumer")
    assert await consumer.beat(join=True) is ErrorCode.NONE
    rows = (await client.ask(list_groups.ListGroupsRequest(), version)).groups
    assert [(row.group_id, row.protocol_type) for row in rows] == [
        ("classic", "consumer"), ("consumer", "consumer"), ("plain", "")
    ]  # fmt: skip
    if version >= 4:
        assert [row.group_state for row in rows] == ["Stable", "Stable", "Empty"]
        empty = await client.ask(list_groups.ListGroupsRequest(states_filter=["empty"]), version)
        assert [row.group_id for row in empty.groups] == ["plain"]
    if version >= 5:
        assert [row.group_type for row in rows] == ["classic", "consumer", "classic"]
        typed = await client.ask(list_groups.ListGroupsRequest(types_filter=["Consumer"]), version)
        assert [row.group_id for row in typed.groups] == ["consumer"]
    await close(classic, consumer)


async def test_offsets_that_wait_for_a_transaction_make_no_group_yet(broker: Broker, client: RawClient) -> None:
    producer = RawProducer(client)
    assert await producer.init() == 0
    assert await producer.send_offset("g", "t", 3) == 0
    assert (await client.ask(list_groups.ListGroupsRequest(), 4)).groups == []
    assert await producer.end(commit=True) == 0
    assert [row.group_id for row in (await client.ask(list_groups.ListGroupsRequest(), 4)).groups] == ["g"]


@pytest.mark.parametrize("version", range(3))
async def test_every_version_deletes(broker: Broker, client: RawClient, version: int) -> None:
    (busy,) = await started(broker, 1, "busy")
    plain = RawMember(client, "plain")
    assert await plain.commit(3, epoch=-1) is ErrorCode.NONE
    request = delete_groups.DeleteGroupsRequest(groups_names=["busy", "plain", "none"])
    answer = await client.ask(request, version)
    assert [(one.group_id, one.error_code) for one in answer.results] == [
        ("busy", ErrorCode.NON_EMPTY_GROUP), ("plain", 0), ("none", ErrorCode.GROUP_ID_NOT_FOUND)
    ]  # fmt: skip
    assert await committed_offset(client, "plain", "t") == (0, -1)
    assert await busy.leave() is ErrorCode.NONE
    assert (await client.ask(request, version)).results[0].error_code == 0
    assert await busy.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    await close(busy)


def deletion(group: str, topic: str = "t", partition: int = 0) -> offset_delete.OffsetDeleteRequest:
    one = offset_delete.OffsetDeleteRequestPartition(partition_index=partition)
    return offset_delete.OffsetDeleteRequest(
        group_id=group, topics=[offset_delete.OffsetDeleteRequestTopic(name=topic, partitions=[one])]
    )


async def deleted(client: RawClient, request: offset_delete.OffsetDeleteRequest) -> tuple[int, int]:
    """Return the error codes of the response and of its partition."""
    answer = await client.ask(request, 0)
    return answer.error_code, answer.topics[0].partitions[0].error_code if answer.topics else 0


async def test_offsets_are_deleted_one_by_one(broker: Broker, client: RawClient) -> None:
    plain = RawMember(client)
    assert await plain.commit(3, epoch=-1) is ErrorCode.NONE
    assert await deleted(client, deletion("none")) == (ErrorCode.GROUP_ID_NOT_FOUND, 0)
    assert await deleted(client, deletion("g", "none")) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert await deleted(client, deletion("g", partition=1)) == (0, 0), "there was none"
    assert await deleted(client, deletion("g")) == (0, 0)
    assert await committed_offset(client, "g", "t") == (0, -1)


async def test_offsets_of_what_members_read_stay(broker: Broker, client: RawClient) -> None:
    await broker.create_topic("u", 1)
    (opaque,) = await started(broker, 1, "opaque")
    assert await deleted(client, deletion("opaque")) == (ErrorCode.NON_EMPTY_GROUP, 0)
    reader = await RawMember.connect(broker, "reader")
    subscription = encode_embedded(ConsumerProtocolSubscription(topics=["t"]), 1)
    reader.send_join(version=3, protocols=(("range", subscription),))
    assert await reader.take_join(3) is ErrorCode.NONE
    reader.send_sync({reader.member_id: b"all"}, version=2)
    assert (await reader.take_sync(2))[0] is ErrorCode.NONE
    consumer = ConsumerProtocolMember(broker, await RawClient.connect(broker), "a", "consumer")
    assert await consumer.beat(join=True) is ErrorCode.NONE
    for member in (reader, consumer):
        assert await deleted(client, deletion(member.group)) == (0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        assert await deleted(client, deletion(member.group, "u")) == (0, 0)
    await close(opaque, reader, consumer)


@pytest.mark.parametrize("version", range(2))
async def test_every_version_describes_the_consumer_protocol(broker: Broker, client: RawClient, version: int) -> None:
    (classic,) = await started(broker, 1, "classic")
    member = ConsumerProtocolMember(broker, await RawClient.connect(broker), "a", instance="i", assignor="range")
    assert await member.beat(join=True) is ErrorCode.NONE
    request = consumer_group_describe.ConsumerGroupDescribeRequest(
        group_ids=["g", "classic", "none"], include_authorized_operations=True
    )
    known, other, unknown = (await client.ask(request, version)).groups
    assert (known.group_state, known.group_epoch, known.assignment_epoch) == ("Stable", 1, 1)
    assert (known.assignor_name, known.authorized_operations) == ("range", 3400)
    (row,) = known.members
    assert (row.member_id, row.instance_id, row.member_epoch, row.client_id) == ("a", "i", 1, "raw")
    assert row.subscribed_topic_names == ["t"]
    for assignment in (row.assignment, row.target_assignment):
        assert [(one.topic_name, one.partitions) for one in assignment.topic_partitions] == [("t", [0, 1])]
    assert row.member_type == (1 if version else -1)
    for one in (other, unknown):
        assert one.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert one.error_message
    as_classic = await client.ask(describe_groups.DescribeGroupsRequest(groups=["g"]), 6)
    assert as_classic.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    await close(classic, member)
