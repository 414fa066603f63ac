"""AlterPartitionReassignments: v0-1

Nothing is replicated: each partition is on all nodes of this broker. A request for that changes
nothing; any other is rejected, as in Kafka with one node.

Version notes:
- v1: whether the replication factor may change (KIP-860)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError
from aiokwire.protocol.messages import alter_partition_reassignments as messages


def handle(
    request: messages.AlterPartitionReassignmentsRequest, call: Call
) -> messages.AlterPartitionReassignmentsResponse:
    """Respond at once."""
    responses = [
        messages.ReassignableTopicResponse(
            name=topic.name, partitions=[_partition(topic.name, one, call) for one in topic.partitions]
        )
        for topic in request.topics
    ]
    return messages.AlterPartitionReassignmentsResponse(
        error_message=None, responses=responses, allow_replication_factor_change=request.allow_replication_factor_change
    )


def refuse(
    request: messages.AlterPartitionReassignmentsRequest, version: int, code: ErrorCode
) -> messages.AlterPartitionReassignmentsResponse:
    """Return an error for the request and for each partition."""
    responses = [
        messages.ReassignableTopicResponse(
            name=topic.name,
            partitions=[
                messages.ReassignablePartitionResponse(
                    partition_index=one.partition_index, error_code=code, error_message=code.description
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return messages.AlterPartitionReassignmentsResponse(
        error_code=code, error_message=code.description, responses=responses
    )


def _partition(
    topic: str, wanted: messages.ReassignablePartition, call: Call
) -> messages.ReassignablePartitionResponse:
    code, message = ErrorCode.NONE, None
    try:
        _check(topic, wanted, call)
    except BrokerError as error:
        code, message = error.code, str(error) or None
    return messages.ReassignablePartitionResponse(
        partition_index=wanted.partition_index, error_code=code, error_message=message
    )


def _check(name: str, wanted: messages.ReassignablePartition, call: Call) -> None:
    index, replicas = wanted.partition_index, wanted.replicas
    topic = call.state.topics.get(name)
    if topic is None or topic.partition(index) is None:
        what = f"topic {name!r} does not exist" if topic is None else f"topic {name!r} has no partition {index}"
        raise BrokerError(what, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic=name)
    if replicas is None:
        raise BrokerError("", code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, topic=name)
    nodes = set(call.state.nodes.ids)
    if sorted(replicas) != sorted(nodes):
        raise BrokerError(
            f"replicas {replicas} of {name}[{index}]: must be the brokers {sorted(nodes)}, each once",
            code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            topic=name,
        )
