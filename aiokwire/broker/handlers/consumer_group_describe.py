"""ConsumerGroupDescribe: v0-1

Groups of the consumer protocol (KIP-848) with their members, current assignments and targets.

Version notes:
- v1: the protocol of each member
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.groups import ConsumerGroup, ConsumerMember, Part, by_topic
from aiokwire.broker.handlers._shared import NOT_ASKED, allowed_operations, group_fault
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import consumer_group_describe as messages

TYPES_SINCE = 1
CONSUMER_TYPE = 1


def handle(request: messages.ConsumerGroupDescribeRequest, call: Call) -> messages.ConsumerGroupDescribeResponse:
    """Respond at once."""
    groups = [_describe(call, group_id) for group_id in request.group_ids]
    for one in groups:
        allowed = request.include_authorized_operations and not one.error_code
        one.authorized_operations = allowed_operations(call, ResourceType.GROUP, one.group_id) if allowed else NOT_ASKED
    return messages.ConsumerGroupDescribeResponse(groups=groups)


def refuse(
    request: messages.ConsumerGroupDescribeRequest, version: int, code: ErrorCode
) -> messages.ConsumerGroupDescribeResponse:
    """Return an error for each group."""
    return messages.ConsumerGroupDescribeResponse(
        groups=[messages.DescribedGroup(error_code=code, group_id=group_id) for group_id in request.group_ids]
    )


def _describe(call: Call, group_id: str) -> messages.DescribedGroup:
    code = group_fault(call, group_id)
    if not call.is_allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if code is not ErrorCode.NONE:
        return messages.DescribedGroup(error_code=code, group_id=group_id)
    group = call.state.groups.find(group_id)
    if not isinstance(group, ConsumerGroup):
        what = "is not a consumer group" if group is not None else "not found"
        return messages.DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=f"Group {group_id} {what}.", group_id=group_id
        )
    members = [_member(call, group, one) for one in group.members.values()]
    if call.state.authorizer is not None and not _may_describe_topics(call, members):
        return messages.DescribedGroup(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message="The client may not describe each topic that is assigned to the group.",
            group_id=group_id,
        )
    return messages.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor or "uniform",
        members=members,
    )


def _may_describe_topics(call: Call, members: list[messages.Member]) -> bool:
    names = {
        topic.topic_name
        for member in members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }
    return all(call.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name) for name in names)


def _member(call: Call, group: ConsumerGroup, member: ConsumerMember) -> messages.Member:
    return messages.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client.client_id,
        client_host=member.client.host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex or None,
        assignment=_assignment(call, frozenset(member.assigned)),
        target_assignment=_assignment(call, group.target.get(member.member_id, frozenset())),
        member_type=CONSUMER_TYPE if call.version >= TYPES_SINCE else -1,
    )


def _assignment(call: Call, parts: frozenset[Part]) -> messages.Assignment:
    """Return the partitions of existing topics."""
    found = []
    for topic_id, indices in by_topic(parts).items():
        topic = call.state.topics.by_id(topic_id)
        if topic is not None:
            found.append(messages.TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=indices))
    return messages.Assignment(topic_partitions=found)
