"""OffsetCommit: v0-10

Commits a group's offsets. A client that names a generation or a member must be in the group; others
may commit only to a group without members.

Version notes:
- v0 had no generation; v1 a timestamp for each offset; v2-4 a retention time for all: both ignored
- v6: leader epochs; v7: group instance ids
- v9: members of the consumer protocol, by their epoch (KIP-848)
- v10: topics by id
"""

from __future__ import annotations

from collections.abc import Iterator

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.groups import Committer, too_long
from aiokwire.broker.handlers._shared import find_topic, narrowed, offset_fault, split_topics, with_topics
from aiokwire.broker.offsets import CommittedOffset
from aiokwire.broker.security import AclOperation
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import offset_commit as messages
from aiokwire.types import TopicPartition


def handle(request: messages.OffsetCommitRequest, call: Call) -> MaybeAwaitable[messages.OffsetCommitResponse]:
    """Respond at once if the log of the offsets is ready."""
    # The group's name may be empty, as in Kafka: early consumers without a group committed so.
    if too_long(request.group_id):
        return refuse(request, call.version, ErrorCode.INVALID_GROUP_ID)
    if call.state.authorizer is not None:
        allowed, denied = split_topics(call, AclOperation.READ, request.topics)
        if denied:
            rows = refuse(narrowed(request, denied), call.version, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            return with_topics(_handle(narrowed(request, allowed), call), rows.topics) if allowed else rows
    return _handle(request, call)


def _handle(request: messages.OffsetCommitRequest, call: Call) -> MaybeAwaitable[messages.OffsetCommitResponse]:
    return call.state.groups.run(
        request.group_id, lambda: _commit(request, call), lambda code: refuse(request, call.version, code)
    )


def _commit(request: messages.OffsetCommitRequest, call: Call) -> messages.OffsetCommitResponse:
    by = Committer(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch, call.version)
    code = call.state.groups.commit_fault(request.group_id, by, _partitions(request, call))
    if code is not ErrorCode.NONE:
        return refuse(request, call.version, code)
    now = wall_ms()
    offsets: dict[TopicPartition, CommittedOffset] = {}
    response = messages.OffsetCommitResponse()
    for wanted in request.topics:
        topic, missing = find_topic(call, wanted.name, wanted.topic_id, AclOperation.READ)
        answer = messages.OffsetCommitResponseTopic(name=wanted.name, topic_id=wanted.topic_id)
        response.topics.append(answer)
        for one in wanted.partitions:
            code = missing
            if topic is not None:
                tp = TopicPartition(topic.name, one.partition_index)
                code = offset_fault(call, tp, one.committed_metadata)
                if code is ErrorCode.NONE:
                    offsets[tp] = CommittedOffset(
                        one.committed_offset, one.committed_leader_epoch, one.committed_metadata or "", now
                    )
            answer.partitions.append(
                messages.OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
            )
    call.state.offsets.commit(request.group_id, offsets, now)
    return response


def _partitions(request: messages.OffsetCommitRequest, call: Call) -> Iterator[TopicPartition]:
    for wanted in request.topics:
        topic, _ = find_topic(call, wanted.name, wanted.topic_id, AclOperation.READ)
        if topic is not None:
            yield from (TopicPartition(topic.name, one.partition_index) for one in wanted.partitions)


def refuse(request: messages.OffsetCommitRequest, version: int, code: ErrorCode) -> messages.OffsetCommitResponse:
    """Return an error for each partition."""
    return messages.OffsetCommitResponse(
        topics=[
            messages.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    messages.OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
