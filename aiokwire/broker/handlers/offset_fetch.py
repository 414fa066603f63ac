"""OffsetFetch: v0-10

The committed offsets of groups.

Version notes:
- v2: no list of topics means all; an error of the whole group
- v5: leader epochs; v7: `require_stable` withholds offsets an open transaction may change (KIP-447)
- v8: several groups; v9: the member and its epoch (KIP-848); v10: topics by id
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import find_topic, group_fault
from aiokwire.broker.offsets import CommittedOffset
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import offset_fetch as messages
from aiokwire.types import TopicPartition

WHOLE_SINCE = 2
SEVERAL_SINCE = 8
IDS_SINCE = 10
NOTHING = CommittedOffset(-1, -1, "", -1)


class Found(NamedTuple):
    """The result for a partition."""

    tp: TopicPartition
    committed: CommittedOffset
    code: ErrorCode


def handle(request: messages.OffsetFetchRequest, call: Call) -> messages.OffsetFetchResponse:
    """Respond at once."""
    if call.version >= SEVERAL_SINCE:
        return messages.OffsetFetchResponse(
            groups=[_group(group, call, stable=request.require_stable) for group in request.groups]
        )
    code = _group_denial(call, request.group_id) or call.state.groups.load_fault(request.group_id)
    if code is not ErrorCode.NONE:
        return refuse(request, call.version, code)
    wanted = (
        None
        if request.topics is None
        else [TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    )
    found = _look_up(call, request.group_id, wanted, stable=request.require_stable)
    return messages.OffsetFetchResponse(
        topics=[
            messages.OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    messages.OffsetFetchResponsePartition(
                        partition_index=one.tp.partition,
                        committed_offset=one.committed.offset,
                        committed_leader_epoch=one.committed.leader_epoch if call.version >= 5 else -1,
                        metadata=one.committed.metadata,
                        error_code=one.code,
                    )
                    for one in rows
                ],
            )
            for name, rows in _by_topic(found)
        ]
    )


def refuse(request: messages.OffsetFetchRequest, version: int, code: ErrorCode) -> messages.OffsetFetchResponse:
    """Return an error for each group, or partition if the version has no other place for it."""
    if version >= SEVERAL_SINCE:
        return messages.OffsetFetchResponse(
            groups=[
                messages.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code) for group in request.groups
            ]
        )
    topics = request.topics or [] if version < WHOLE_SINCE else []
    return messages.OffsetFetchResponse(
        error_code=code if version >= WHOLE_SINCE else ErrorCode.NONE,
        topics=[
            messages.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    messages.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in topics
        ],
    )


def _look_up(call: Call, group_id: str, wanted: list[TopicPartition] | None, *, stable: bool) -> list[Found]:
    committed = call.state.offsets.of_group(group_id)
    unstable = call.state.offsets.pending(group_id) if stable else set()
    asked = sorted(committed.keys() | unstable) if wanted is None else wanted
    denied: set[str] = set()
    if call.state.authorizer is not None:
        denied = _denied_topics(call, asked, is_asked=wanted is not None)
    if wanted is None:
        asked = [tp for tp in asked if tp.topic not in denied]
    return [
        Found(tp, NOTHING, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if tp.topic in denied
        else Found(tp, NOTHING, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if tp in unstable
        else Found(tp, committed.get(tp, NOTHING), ErrorCode.NONE)
        for tp in asked
    ]


def _denied_topics(call: Call, asked: list[TopicPartition], *, is_asked: bool) -> set[str]:
    operation, kind = AclOperation.DESCRIBE, ResourceType.TOPIC
    topics = {tp.topic for tp in asked}
    return {name for name in topics if not call.is_allowed(operation, kind, name, is_asked=is_asked)}


def _group_denial(call: Call, group_id: str) -> ErrorCode:
    if call.is_allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return ErrorCode.NONE
    return ErrorCode.GROUP_AUTHORIZATION_FAILED


def _by_topic(found: Iterable[Found]) -> list[tuple[str, list[Found]]]:
    return [(name, list(rows)) for name, rows in groupby(found, key=lambda one: one.tp.topic)]


def _group(group: messages.OffsetFetchRequestGroup, call: Call, *, stable: bool) -> messages.OffsetFetchResponseGroup:
    answer = messages.OffsetFetchResponseGroup(group_id=group.group_id)
    code = (
        _group_denial(call, group.group_id)
        or group_fault(call, group.group_id)
        or call.state.groups.fetch_fault(group.group_id, group.member_id, group.member_epoch)
    )
    if code is not ErrorCode.NONE:
        answer.error_code = code
        return answer
    if group.topics is None:
        for name, rows in _by_topic(_look_up(call, group.group_id, None, stable=stable)):
            topic = call.state.topics.get(name)
            topic_id = topic.id if topic is not None and call.version >= IDS_SINCE else ZERO_UUID
            if call.version < IDS_SINCE or topic is not None:
                answer.topics.append(_topic(name, topic_id, rows, call.version))
        return answer
    for wanted in group.topics:
        found, code = find_topic(call, wanted.name, wanted.topic_id, AclOperation.DESCRIBE)
        if call.version >= IDS_SINCE and found is None:
            rows = [Found(TopicPartition("", index), NOTHING, code) for index in wanted.partition_indexes]
        else:
            name = found.name if found is not None else wanted.name
            asked = [TopicPartition(name, index) for index in wanted.partition_indexes]
            rows = _look_up(call, group.group_id, asked, stable=stable)
        answer.topics.append(_topic(wanted.name, wanted.topic_id, rows, call.version))
    return answer


def _topic(name: str, topic_id: bytes, rows: list[Found], version: int) -> messages.OffsetFetchResponseTopics:
    return messages.OffsetFetchResponseTopics(
        name=name if version < IDS_SINCE else "",
        topic_id=topic_id,
        partitions=[
            messages.OffsetFetchResponsePartitions(
                partition_index=one.tp.partition,
                committed_offset=one.committed.offset,
                committed_leader_epoch=one.committed.leader_epoch,
                metadata=one.committed.metadata,
                error_code=one.code,
            )
            for one in rows
        ],
    )
