"""ListOffsets: v0-11

Where a partition begins and ends, and which offset belongs to a time.

Version notes:
- v0: a list of offsets, newest first; v1 and up: one offset with its timestamp
- v2: isolation level: for read_committed the end is the last stable offset
- v4: leader epochs
- v7: -3 the record with the largest timestamp; v8: -4 the earliest offset on this machine's disk
- v9: -5 the newest offset in remote storage, v11: -6 the next to go there: there is no remote storage, so none
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import epoch_fault, partition_fault
from aiokwire.broker.topics import Partition
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import list_offsets
from aiokwire.types import OffsetAndTimestamp

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The first version that knows each of them.
SINCE = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
UNKNOWN = OffsetAndTimestamp(-1, -1)


def handle(request: list_offsets.ListOffsetsRequest, call: Call) -> list_offsets.ListOffsetsResponse:
    """Answer at once."""
    committed = request.isolation_level == 1
    return list_offsets.ListOffsetsResponse(
        topics=[
            list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_partition(call, topic.name, wanted, committed) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _partition(
    call: Call, name: str, wanted: list_offsets.ListOffsetsPartition, committed: bool
) -> list_offsets.ListOffsetsPartitionResponse:
    index = wanted.partition_index
    partition = call.state.topics.partition(name, index)
    if partition is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif wanted.timestamp < 0 and call.version < SINCE.get(wanted.timestamp, 2**15):
        code = ErrorCode.UNSUPPORTED_VERSION
    else:
        code = partition_fault(call, partition) or epoch_fault(partition, wanted.current_leader_epoch)
    if partition is None or code is not ErrorCode.NONE:
        return list_offsets.ListOffsetsPartitionResponse(partition_index=index, error_code=code)
    if call.version == 0:
        return list_offsets.ListOffsetsPartitionResponse(
            partition_index=index, old_style_offsets=_old_style(partition, wanted)
        )
    found = _find(partition, wanted.timestamp, committed)
    return list_offsets.ListOffsetsPartitionResponse(
        partition_index=index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if call.version >= 4 else -1,
    )


def _find(partition: Partition, timestamp: int, committed: bool) -> OffsetAndTimestamp:
    log, epoch = partition.log, partition.leader_epoch
    end = log.last_stable_offset if committed else log.high_watermark
    if timestamp == LATEST:
        return OffsetAndTimestamp(end, -1, epoch)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return OffsetAndTimestamp(log.log_start_offset, -1, epoch)
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        return UNKNOWN
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end:
        return UNKNOWN
    return OffsetAndTimestamp(found.offset, found.timestamp, epoch)


def _old_style(partition: Partition, wanted: list_offsets.ListOffsetsPartition) -> list[int]:
    log = partition.log
    if wanted.timestamp == EARLIEST:
        offsets = [log.log_start_offset]
    elif wanted.timestamp == LATEST:
        offsets = [log.high_watermark, log.log_start_offset]
    else:
        found = log.offset_for_timestamp(wanted.timestamp)
        offsets = [found.offset if found is not None else log.high_watermark, log.log_start_offset]
    return list(dict.fromkeys(offsets))[: max(wanted.max_num_offsets, 0)]
