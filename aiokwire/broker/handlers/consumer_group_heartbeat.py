"""ConsumerGroupHeartbeat: v0-1

Consumer protocol (KIP-848): a member sends subscription and partitions, gets epoch and assignment.

Version notes:
- v1: members choose their ids (KIP-1082), and may subscribe by a regular expression
"""

from __future__ import annotations

from collections.abc import Callable

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.groups import Heartbeat, HeartbeatResult, Part, by_topic
from aiokwire.broker.handlers._shared import client_of
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import consumer_group_heartbeat as messages


def handle(
    request: messages.ConsumerGroupHeartbeatRequest, call: Call
) -> MaybeAwaitable[messages.ConsumerGroupHeartbeatResponse]:
    """Respond at once."""
    for name in request.subscribed_topic_names or ():
        if not call.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            return _response(HeartbeatResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    names, owned = request.subscribed_topic_names, request.topic_partitions
    heartbeat = Heartbeat(
        request.group_id,
        request.member_id,
        request.member_epoch,
        client_of(call),
        call.version,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        tuple(names) if names is not None else None,
        request.subscribed_topic_regex,
        request.server_assignor,
        frozenset(Part(topic.topic_id, index) for topic in owned for index in topic.partitions)
        if owned is not None
        else None,
        _visibility(call) if call.state.authorizer is not None else None,
    )
    return call.state.groups.run(
        request.group_id,
        lambda: _response(call.state.groups.consumer_heartbeat(heartbeat)),
        lambda code: _response(HeartbeatResult(code)),
    )


def _visibility(call: Call) -> Callable[[str], bool]:
    return lambda name: call.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name, is_asked=False)


def _response(result: HeartbeatResult) -> messages.ConsumerGroupHeartbeatResponse:
    assignment = None
    if result.assignment is not None:
        assignment = messages.Assignment(
            topic_partitions=[
                messages.TopicPartitions(topic_id=topic_id, partitions=indices)
                for topic_id, indices in by_topic(result.assignment).items()
            ]
        )
    return messages.ConsumerGroupHeartbeatResponse(
        error_code=result.code,
        error_message=result.message if result.code is not ErrorCode.NONE else None,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=result.interval_ms,
        assignment=assignment,
    )
