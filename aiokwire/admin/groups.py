"""Groups in the admin client: values, requests and responses. No I/O; `group_calls` is the caller.

Groups of the classic protocol are described by DescribeGroups, which returns assignments as the
members' own bytes; groups of the consumer protocol (KIP-848) by ConsumerGroupDescribe.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from aiokwire.admin.acls import AclOperation, operations_of
from aiokwire.admin.calls import with_message
from aiokwire.admin.results import Results
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ProtocolViolation, error_for
from aiokwire.net import ApiVersions
from aiokwire.protocol import decode_embedded
from aiokwire.protocol.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    leave_group,
    list_groups,
    offset_delete,
    offset_fetch,
)
from aiokwire.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from aiokwire.types import OffsetAndMetadata, TopicPartition

T = TypeVar("T")

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
DEAD: Final = "Dead"
WITHOUT_MEMBERS: Final = frozenset({"Empty", DEAD})

_FETCH: Final = offset_fetch.OffsetFetchRequest.FIRST_VERSION_WITH
FIRST_VERSION_WITH_STABLE: Final = _FETCH["require_stable"]
FIRST_VERSION_WITH_GROUPS: Final = _FETCH["groups"]
FIRST_VERSION_WITH_IDS: Final = _FETCH["topic_id"]  # and without names (KIP-516)
FIRST_VERSION_WITH_MEMBERS: Final = leave_group.LeaveGroupRequest.FIRST_VERSION_WITH["members"]
FIRST_VERSION_WITH_REASONS: Final = leave_group.LeaveGroupRequest.FIRST_VERSION_WITH["reason"]


@dataclasses.dataclass(frozen=True, slots=True)
class GroupListing:
    """A group in the list of groups."""

    group_id: str
    protocol_type: str
    """`consumer` for consumers; Connect and others use their own. Empty if the group has only offsets."""
    state: str
    """By Kafka's name: `Stable`, `Empty`, ... Empty from brokers before 2.6."""
    type: str
    """`classic`, `consumer`, `share`, `streams`. Empty from brokers before 3.8."""
    coordinator: int


@dataclasses.dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    """Its partitions; empty while the group rebalances, and in groups of other software than consumers."""
    target: tuple[TopicPartition, ...] | None
    """The partitions that it will have; None in the classic protocol, which does not report them."""
    topics: tuple[str, ...]
    """Its subscription by name."""
    pattern: str | None
    """Its subscription by a pattern that the broker matches."""
    epoch: int | None
    """None in the classic protocol."""
    rack_id: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members."""

    group_id: str
    type: str
    """`classic` or `consumer`."""
    protocol_type: str
    state: str
    assignor: str
    """The assignor in use; empty before the first assignment."""
    epoch: int | None
    """None in the classic protocol, which reports its generation only to members."""
    assignment_epoch: int | None
    coordinator: int
    """The node id of the coordinator."""
    members: tuple[GroupMember, ...]
    authorized_operations: frozenset[AclOperation] | None = None
    """The operations that this client may perform on the group, if requested (KIP-430)."""


class PartitionLag(NamedTuple):
    """The lag of a group in one partition."""

    committed: OffsetAndMetadata | None
    """None: the group has committed no offset."""
    end: int
    lag: int | None
    """Offsets from the committed one to the end; None without a committed offset."""


# --- list -------------------------------------------------------------------------------------------------------------


def list_request(states: Iterable[str], types: Iterable[str]) -> list_groups.ListGroupsRequest:
    return list_groups.ListGroupsRequest(states_filter=list(states), types_filter=list(types))


def read_listed(response: list_groups.ListGroupsResponse, node_id: int) -> list[GroupListing]:
    return [
        GroupListing(one.group_id, one.protocol_type, one.group_state, one.group_type, node_id)
        for one in response.groups
    ]


# --- describe ---------------------------------------------------------------------------------------------------------


def read_classic(response: describe_groups.DescribeGroupsResponse, group_id: str, coordinator: int) -> GroupDescription:
    """Raises: BrokerError: the group does not exist, or may not be described; ProtocolViolation:
    the response is for another group."""
    group = _only([one for one in response.groups if one.group_id == group_id], group_id)
    _check(group.error_code, f"cannot describe group {group_id!r}", group.error_message)
    if group.group_state == DEAD and not group.members:  # the response of brokers before 3.8 for an unknown group
        _check(ErrorCode.GROUP_ID_NOT_FOUND, f"cannot describe group {group_id!r}")
    consumers = group.protocol_type == CONSUMER
    return GroupDescription(
        group_id,
        CLASSIC,
        group.protocol_type,
        group.group_state,
        group.protocol_data,
        None,
        None,
        coordinator,
        tuple(_classic_member(one, consumers=consumers) for one in group.members),
        operations_of(group.authorized_operations),
    )


def _classic_member(one: describe_groups.DescribedGroupMember, *, consumers: bool) -> GroupMember:
    assignment, topics, rack_id = ((), (), None) if not consumers else _member_bytes(one)
    return GroupMember(
        one.member_id,
        one.group_instance_id,
        one.client_id,
        one.client_host,
        assignment,
        None,
        topics,
        None,
        None,
        rack_id,
    )


def _member_bytes(
    one: describe_groups.DescribedGroupMember,
) -> tuple[tuple[TopicPartition, ...], tuple[str, ...], str | None]:
    """Decode a consumer's assignment, topics and rack, opaque bytes to the coordinator."""
    assignment: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ()
    rack_id = None
    try:
        if one.member_assignment:
            assigned = decode_embedded(one.member_assignment, ConsumerProtocolAssignment).assigned_partitions
            assignment = _sorted(TopicPartition(entry.topic, n) for entry in assigned for n in entry.partitions)
        if one.member_metadata:
            subscription = decode_embedded(one.member_metadata, ConsumerProtocolSubscription)
            topics, rack_id = tuple(sorted(subscription.topics)), subscription.rack_id
    except ProtocolViolation as error:
        raise ProtocolViolation(f"member {one.member_id!r}: {error}") from error
    return assignment, topics, rack_id


def read_consumer_protocol(
    response: consumer_group_describe.ConsumerGroupDescribeResponse, group_id: str, coordinator: int
) -> GroupDescription:
    """Raises: BrokerError: no group of the consumer protocol has this id, or it may not be
    described; ProtocolViolation: the response is for another group."""
    group = _only([one for one in response.groups if one.group_id == group_id], group_id)
    _check(group.error_code, f"cannot describe group {group_id!r}", group.error_message)
    return GroupDescription(
        group_id,
        CONSUMER,
        CONSUMER,
        group.group_state,
        group.assignor_name,
        group.group_epoch,
        group.assignment_epoch,
        coordinator,
        tuple(_consumer_protocol_member(one) for one in group.members),
        operations_of(group.authorized_operations),
    )


def _consumer_protocol_member(one: consumer_group_describe.Member) -> GroupMember:
    return GroupMember(
        one.member_id,
        one.instance_id,
        one.client_id,
        one.client_host,
        _assigned(one.assignment),
        _assigned(one.target_assignment),
        tuple(sorted(one.subscribed_topic_names)),
        one.subscribed_topic_regex or None,
        one.member_epoch,
        one.rack_id,
    )


def _assigned(assignment: consumer_group_describe.Assignment | None) -> tuple[TopicPartition, ...]:
    topics = () if assignment is None else assignment.topic_partitions
    return _sorted(TopicPartition(topic.topic_name, number) for topic in topics for number in topic.partitions)


def _sorted(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(partitions))


# --- offsets ----------------------------------------------------------------------------------------------------------


class AllOffsets:
    """OffsetFetch for all committed offsets of a group; brokers since 0.10.2."""

    def __init__(self, group_id: str, *, stable: bool) -> None:
        self.request: offset_fetch.OffsetFetchRequest = offset_fetch.OffsetFetchRequest()
        self._group_id = group_id
        self._stable = stable

    def version(self, versions: ApiVersions) -> int:
        """Pick the newest version with names (deleted ids are unknown), and fill in the request."""
        picked = versions.pick(offset_fetch.OffsetFetchRequest, FIRST_VERSION_WITH_IDS - 1)
        request = self.request
        request.require_stable = self._stable and picked >= FIRST_VERSION_WITH_STABLE
        request.group_id, request.topics, request.groups = "", [], []
        if picked >= FIRST_VERSION_WITH_GROUPS:
            request.groups = [offset_fetch.OffsetFetchRequestGroup(group_id=self._group_id, topics=None)]
        else:
            request.group_id = self._group_id
            request.topics = None  # before version 2, encoding refuses it
        return picked

    def read(self, response: offset_fetch.OffsetFetchResponse) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets.

        Raises: BrokerError: the coordinator refuses, for the group or for a partition.
        """
        what = f"cannot read the offsets of group {self._group_id!r}"
        _check(response.groups[0].error_code if response.groups else response.error_code, what)
        found = {}
        topics: Sequence[offset_fetch.OffsetFetchResponseTopics | offset_fetch.OffsetFetchResponseTopic]
        topics = response.groups[0].topics if response.groups else response.topics
        for topic in topics:
            for data in topic.partitions:
                tp = TopicPartition(topic.name, data.partition_index)
                if data.error_code:
                    raise error_for(data.error_code, f"{what}: {tp}", topic=tp.topic, partition=tp.partition)
                if data.committed_offset >= 0:
                    found[tp] = OffsetAndMetadata(
                        data.committed_offset, data.metadata or "", data.committed_leader_epoch
                    )
        return dict(sorted(found.items()))


def lags(
    committed: Mapping[TopicPartition, OffsetAndMetadata], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, PartitionLag]:
    """Return the lag of each partition that has an end."""
    found = {}
    for tp, end in sorted(ends.items()):
        offset = committed.get(tp)
        found[tp] = PartitionLag(offset, end, None if offset is None else max(0, end - offset.offset))
    return found


def delete_offsets_request(group_id: str, partitions: Iterable[TopicPartition]) -> offset_delete.OffsetDeleteRequest:
    topics: dict[str, offset_delete.OffsetDeleteRequestTopic] = {}
    for name, number in partitions:
        topic = topics.setdefault(name, offset_delete.OffsetDeleteRequestTopic(name=name))
        topic.partitions.append(offset_delete.OffsetDeleteRequestPartition(partition_index=number))
    return offset_delete.OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))


def read_deleted_offsets(response: offset_delete.OffsetDeleteResponse, group_id: str) -> Results[TopicPartition, None]:
    """Raises: BrokerError: the group does not exist, or is not a group of consumers."""
    _check(response.error_code, f"cannot delete offsets of group {group_id!r}")
    results: Results[TopicPartition, None] = Results({}, {})
    for topic in response.topics:
        for data in topic.partitions:
            tp = TopicPartition(topic.name, data.partition_index)
            if data.error_code:
                what = f"cannot delete the offset of group {group_id!r} for {tp}"
                results.errors[tp] = error_for(data.error_code, what, topic=tp.topic, partition=tp.partition)
            else:
                results.succeeded[tp] = None
    return results


# --- groups and members -----------------------------------------------------------------------------------------------


def read_deleted(response: delete_groups.DeleteGroupsResponse, group_id: str) -> None:
    """Raises: BrokerError: the group has members, does not exist, or may not be deleted."""
    result = _only([one for one in response.results if one.group_id == group_id], group_id)
    _check(result.error_code, f"cannot delete group {group_id!r}")


class Leaver(NamedTuple):
    """A member to remove, by member id or by group instance id."""

    member_id: str = ""
    group_instance_id: str | None = None

    def __str__(self) -> str:
        return self.member_id or f"instance {self.group_instance_id}"


def shape_leave(
    request: leave_group.LeaveGroupRequest, leavers: Sequence[Leaver], versions: ApiVersions, reason: str
) -> int:
    """Fill `leavers` into a request; return its version. Before version 3 there is one leaver."""
    picked = versions.pick(leave_group.LeaveGroupRequest)
    request.member_id, request.members = "", []
    if picked < FIRST_VERSION_WITH_MEMBERS:
        request.member_id = leavers[0].member_id
    else:
        given = reason if picked >= FIRST_VERSION_WITH_REASONS else None
        request.members = [
            leave_group.MemberIdentity(member_id=m, group_instance_id=i, reason=given) for m, i in leavers
        ]
    return picked


def read_left(
    response: leave_group.LeaveGroupResponse, group_id: str, leavers: Sequence[Leaver]
) -> Results[Leaver, None]:
    """Raises: BrokerError: the coordinator refuses the request as a whole."""
    _check(response.error_code, f"cannot remove members of group {group_id!r}")
    results: Results[Leaver, None] = Results({}, {})
    codes = {(one.member_id, one.group_instance_id): one.error_code for one in response.members}
    for one in leavers:
        code = codes.get((one.member_id, one.group_instance_id), 0)
        if code:
            results.errors[one] = error_for(code, f"cannot remove {one} from group {group_id!r}")
        else:
            results.succeeded[one] = None
    return results


# --- helpers ----------------------------------------------------------------------------------------------------------


def _only(groups: Sequence[T], group_id: str) -> T:
    if len(groups) != 1:
        raise ProtocolViolation(f"the coordinator's response contains group {group_id!r} {len(groups)} times, not once")
    return groups[0]


def _check(code: int, what: str, message: str | None = None) -> None:
    if code:
        raise error_for(code, with_message(what, message))
