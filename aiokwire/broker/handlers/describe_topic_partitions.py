"""DescribeTopicPartitions: v0

Topics by name, in pages of up to `response_partition_limit` partitions; the cursor starts the next.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import allowed_operations
from aiokwire.broker.nodes import NO_NODE
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.broker.topics import Partition, Topic, name_fault
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import describe_topic_partitions as messages


def handle(request: messages.DescribeTopicPartitionsRequest, call: Call) -> messages.DescribeTopicPartitionsResponse:
    """Respond at once."""
    names = sorted({topic.name for topic in request.topics} or {topic.name for topic in call.state.topics})
    if call.state.authorizer is None:
        return _describe(request, call, names)
    operation, kind = AclOperation.DESCRIBE, ResourceType.TOPIC
    allowed = [name for name in names if call.is_allowed(operation, kind, name, is_asked=bool(request.topics))]
    response = _describe(request, call, allowed)
    if request.topics:
        first = request.cursor.topic_name if request.cursor is not None else ""
        response.topics += [_denied(name) for name in names if name >= first and name not in set(allowed)]
    return response


def _describe(
    request: messages.DescribeTopicPartitionsRequest, call: Call, names: list[str]
) -> messages.DescribeTopicPartitionsResponse:
    all_asked = not request.topics
    first = 0
    if request.cursor is not None:
        names = [name for name in names if name >= request.cursor.topic_name]
        first = request.cursor.partition_index if names and names[0] == request.cursor.topic_name else 0
    room = max(1, min(request.response_partition_limit, call.state.configs.integer("max.request.partition.size.limit")))
    found: list[messages.DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        topic = call.state.topics.get(name)
        if topic is None:
            if not all_asked:
                found.append(_unknown(call, name))
            continue
        if room == 0:
            return messages.DescribeTopicPartitionsResponse(
                topics=found, next_cursor=messages.Cursor(topic_name=name, partition_index=first)
            )
        piece = topic.partitions[first : first + room]
        found.append(_topic(call, topic, piece))
        room -= len(piece)
        if first + len(piece) < len(topic.partitions):
            return messages.DescribeTopicPartitionsResponse(
                topics=found, next_cursor=messages.Cursor(topic_name=name, partition_index=first + len(piece))
            )
        first = 0
    return messages.DescribeTopicPartitionsResponse(topics=found)


def _denied(name: str) -> messages.DescribeTopicPartitionsResponseTopic:
    return messages.DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name)


def _unknown(call: Call, name: str) -> messages.DescribeTopicPartitionsResponseTopic:
    code = ErrorCode.INVALID_TOPIC_EXCEPTION if name_fault(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    operations = allowed_operations(call, ResourceType.TOPIC, name)
    return messages.DescribeTopicPartitionsResponseTopic(
        error_code=code, name=name, topic_authorized_operations=operations
    )


def _topic(call: Call, topic: Topic, partitions: list[Partition]) -> messages.DescribeTopicPartitionsResponseTopic:
    nodes = call.state.nodes
    up = {node.id for node in nodes.listed()}
    return messages.DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        topic_authorized_operations=allowed_operations(call, ResourceType.TOPIC, topic.name),
        partitions=[
            messages.DescribeTopicPartitionsResponsePartition(
                partition_index=partition.index,
                error_code=ErrorCode.LEADER_NOT_AVAILABLE if nodes.leader(partition).node_id == NO_NODE else 0,
                leader_id=nodes.leader(partition).node_id,
                leader_epoch=nodes.leader(partition).epoch,
                replica_nodes=nodes.replicas(partition.index),
                isr_nodes=[one for one in nodes.replicas(partition.index) if one in up],
                offline_replicas=[one for one in nodes.replicas(partition.index) if one not in up],
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for partition in partitions
        ],
    )
