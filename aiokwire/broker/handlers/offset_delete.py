"""OffsetDelete: v0

Deletes committed offsets of a group, except for topics that its members read.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.groups import ClassicGroup
from aiokwire.broker.handlers._shared import narrowed, split_topics, with_topics
from aiokwire.broker.security import AclOperation
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import offset_delete as messages
from aiokwire.types import TopicPartition


def handle(request: messages.OffsetDeleteRequest, call: Call) -> MaybeAwaitable[messages.OffsetDeleteResponse]:
    """Respond at once if the log of the offsets is ready."""
    if call.state.authorizer is not None:
        allowed, denied = split_topics(call, AclOperation.READ, request.topics)
        if denied:
            return with_topics(_handle(narrowed(request, allowed), call), [_denied_topic(one) for one in denied])
    return _handle(request, call)


def _handle(request: messages.OffsetDeleteRequest, call: Call) -> MaybeAwaitable[messages.OffsetDeleteResponse]:
    group = call.state.groups.find(request.group_id)
    if group is None:
        return _refusal(call.state.groups.load_fault(request.group_id) or ErrorCode.GROUP_ID_NOT_FOUND)
    if call.state.groups.subscribed_topics(request.group_id) is None:
        return _refusal(ErrorCode.NON_EMPTY_GROUP)
    if isinstance(group, ClassicGroup) and group.members and not group.reads_topics:
        return _refusal(ErrorCode.NON_EMPTY_GROUP)
    return call.state.groups.run(request.group_id, lambda: _delete(request, call), _refusal)


def _delete(request: messages.OffsetDeleteRequest, call: Call) -> messages.OffsetDeleteResponse:
    subscribed = call.state.groups.subscribed_topics(request.group_id) or set()
    gone: list[TopicPartition] = []
    response = messages.OffsetDeleteResponse()
    for topic in request.topics:
        answer = messages.OffsetDeleteResponseTopic(name=topic.name)
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
                messages.OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=code)
            )
    call.state.offsets.delete(request.group_id, gone, wall_ms())
    return response


def _denied_topic(topic: messages.OffsetDeleteRequestTopic) -> messages.OffsetDeleteResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return messages.OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            messages.OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in topic.partitions
        ],
    )


def _refusal(code: ErrorCode) -> messages.OffsetDeleteResponse:
    return messages.OffsetDeleteResponse(error_code=code)
