"""DescribeProducers: v0

The producers of a partition and the starts of their open transactions, to find a hanging one.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import describe_producers as messages


def handle(request: messages.DescribeProducersRequest, call: Call) -> messages.DescribeProducersResponse:
    """Respond at once."""
    return messages.DescribeProducersResponse(
        topics=[
            messages.TopicResponse(name=topic.name, partitions=_partitions(call, topic)) for topic in request.topics
        ]
    )


def _partitions(call: Call, topic: messages.TopicRequest) -> list[messages.PartitionResponse]:
    if call.is_allowed(AclOperation.READ, ResourceType.TOPIC, topic.name):
        return [_partition(call, topic.name, index) for index in topic.partition_indexes]
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return [
        messages.PartitionResponse(partition_index=index, error_code=code, error_message=code.description)
        for index in topic.partition_indexes
    ]


def _partition(call: Call, name: str, index: int) -> messages.PartitionResponse:
    partition = call.state.topics.partition(name, index)
    if partition is None:
        return messages.PartitionResponse(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"{name}[{index}] does not exist",
        )
    return messages.PartitionResponse(
        partition_index=index,
        active_producers=[
            messages.ProducerState(
                producer_id=state.producer_id,
                producer_epoch=state.epoch,
                last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp,
                coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=state.transaction_start,
            )
            for state in partition.log.producers.states.values()
        ],
    )
