"""OffsetDelete: v0

Committed offsets of a group go, but those of topics that its members read.
"""

from __future__ import annotations

from collections.abc import Awaitable

from aiokwire.broker.dispatch import Call
from aiokwire.broker.groups import ClassicGroup
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import offset_delete
from aiokwire.types import TopicPartition


def handle(
    request: offset_delete.OffsetDeleteRequest, call: Call
) -> offset_delete.OffsetDeleteResponse | Awaitable[offset_delete.OffsetDeleteResponse]:
    """Answer at once where the log of the offsets is there."""
    group = call.state.groups.find(request.group_id)
    if group is None:
        return _refusal(call.state.groups.load_fault(request.group_id) or ErrorCode.GROUP_ID_NOT_FOUND)
    if call.state.groups.subscribed_topics(request.group_id) is None:
        return _refusal(ErrorCode.NON_EMPTY_GROUP)
    if isinstance(group, ClassicGroup) and group.members and not group.reads_topics:
        return _refusal(ErrorCode.NON_EMPTY_GROUP)
    return call.state.groups.run(request.group_id, lambda: _delete(request, call), _refusal)


def _delete(request: offset_delete.OffsetDeleteRequest, call: Call) -> offset_delete.OffsetDeleteResponse:
    subscribed = call.state.groups.subscribed_topics(request.group_id) or set()
    gone: list[TopicPartition] = []
    response = offset_delete.OffsetDeleteResponse()
    for topic in request.topics:
        answer = offset_delete.OffsetDeleteResponseTopic(name=topic.name)
        response.topics.append(answer)
        for one in topic.partitions:
            code = ErrorCode.NONE
            if topic.name in subscribed:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            elif call.state.topics.partition(topic.name, one.partition_index) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                gone.append(TopicPartition(topic.name, one.partition_index))
            answer.partitions.append(
                offset_delete.OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=code)
            )
    call.state.offsets.delete(request.group_id, gone, wall_ms())
    return response


def _refusal(code: ErrorCode) -> offset_delete.OffsetDeleteResponse:
    return offset_delete.OffsetDeleteResponse(error_code=code)
