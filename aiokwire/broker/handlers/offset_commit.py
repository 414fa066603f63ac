"""OffsetCommit: v0-10

Keeps a group's offsets. There are no members yet: only commits outside of a generation (-1) are taken.

Version notes:
- v0 had no generation; v1 a timestamp for each offset; v2-4 a retention time for all: neither has a say any more
- v6: leader epochs; v7: group instance ids
- v10: topics by id
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import find_topic, membership_fault, offset_fault
from aiokwire.broker.offsets import CommittedOffset
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.protocol.messages import offset_commit
from aiokwire.types import TopicPartition

logger = logging.getLogger(__name__)


def handle(
    request: offset_commit.OffsetCommitRequest, call: Call
) -> offset_commit.OffsetCommitResponse | Awaitable[offset_commit.OffsetCommitResponse]:
    """Answer at once where the log of the offsets is there."""
    # A group may have an empty name here, as in Kafka: consumers of long ago that were in no group committed so.
    code = membership_fault(request.generation_id_or_member_epoch)
    if code is not ErrorCode.NONE:
        return _refusal(request, code)
    return call.state.offsets.run(
        request.group_id, lambda: _commit(request, call), lambda error: _unavailable(request, error)
    )


def _commit(request: offset_commit.OffsetCommitRequest, call: Call) -> offset_commit.OffsetCommitResponse:
    now = wall_ms()
    offsets: dict[TopicPartition, CommittedOffset] = {}
    response = offset_commit.OffsetCommitResponse()
    for wanted in request.topics:
        topic, missing = find_topic(call, wanted.name, wanted.topic_id)
        answer = offset_commit.OffsetCommitResponseTopic(name=wanted.name, topic_id=wanted.topic_id)
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
                offset_commit.OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
            )
    call.state.offsets.commit(request.group_id, offsets, now)
    return response


def _unavailable(request: offset_commit.OffsetCommitRequest, error: StorageError) -> offset_commit.OffsetCommitResponse:
    logger.error("offsets of group %r cannot be committed: %s", request.group_id, error)
    return _refusal(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _refusal(request: offset_commit.OffsetCommitRequest, code: ErrorCode) -> offset_commit.OffsetCommitResponse:
    return offset_commit.OffsetCommitResponse(
        topics=[
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    offset_commit.OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
