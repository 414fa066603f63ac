"""OffsetForLeaderEpoch: v0-4

The end offset of a leader epoch, by which consumers detect truncation.

Version notes:
- v1: the response has the epoch; v2: the client's current leader epoch
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import epoch_fault, partition_fault
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import offset_for_leader_epoch as messages


def handle(request: messages.OffsetForLeaderEpochRequest, call: Call) -> messages.OffsetForLeaderEpochResponse:
    """Respond at once."""
    sees_all = call.is_allowed_in_cluster(AclOperation.CLUSTER_ACTION, is_asked=False)
    return messages.OffsetForLeaderEpochResponse(
        topics=[
            messages.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_partition(call, topic.topic, wanted) for wanted in topic.partitions]
                if sees_all or call.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.topic)
                else [_denied(wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _denied(wanted: messages.OffsetForLeaderPartition) -> messages.EpochEndOffset:
    return messages.EpochEndOffset(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=wanted.partition)


def _partition(call: Call, name: str, wanted: messages.OffsetForLeaderPartition) -> messages.EpochEndOffset:
    partition = call.state.topics.partition(name, wanted.partition)
    if partition is None:
        return messages.EpochEndOffset(
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition=wanted.partition, leader_epoch=-1
        )
    code = partition_fault(call, partition) or epoch_fault(partition, wanted.current_leader_epoch)
    if code is not ErrorCode.NONE:
        return messages.EpochEndOffset(error_code=code, partition=wanted.partition)
    log = partition.log
    if wanted.leader_epoch == partition.leader_epoch:
        # The current epoch ends at the end of the log, even before its first record.
        return messages.EpochEndOffset(
            partition=wanted.partition,
            leader_epoch=partition.leader_epoch if call.version >= 1 else -1,
            end_offset=log.end_offset,
        )
    epoch, end = log.leader_epochs.end_offset_for(wanted.leader_epoch, log.end_offset)
    return messages.EpochEndOffset(
        partition=wanted.partition, leader_epoch=epoch if call.version >= 1 else -1, end_offset=end
    )
