"""ListOffsets: v0-11

The start and end of a partition, and the offset for a timestamp.

Version notes:
- v0: a list of offsets, newest first; v1 and up: one offset with its timestamp
- v2: isolation level: for read_committed the end is the last stable offset
- v4: leader epochs
- v7: -3 the record with the largest timestamp; v8: -4 the earliest offset on this machine's disk
- v9: -5 the newest offset in remote storage, v11: -6 the next to go there: no such storage, so none
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.handlers._shared import epoch_fault, partition_fault
from aiokwire.broker.log import Candidate
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.broker.topics import Partition
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import CorruptRecord
from aiokwire.protocol.messages import list_offsets as messages
from aiokwire.threads import run_in_thread
from aiokwire.types import OffsetAndTimestamp

logger: logging.Logger = logging.getLogger(__name__)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The first version that knows each of them.
SINCE = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
QUICK = 64  # batches that one request may look into on the event loop
QUICK_DECOMPRESSED = 256 << 10  # bytes that each may decompress to there
UNKNOWN = OffsetAndTimestamp(-1, -1)


class _Searches:
    """Lookups by timestamp: a few on the event loop, longer ones in a thread."""

    def __init__(self) -> None:
        self.left = QUICK
        self.slow: list[_Slow] = []

    def first(self, candidates: Iterator[Candidate]) -> OffsetAndTimestamp | None:
        """Return the first record that a candidate has.

        Raises: _Later: the search takes too long.
        """
        for candidate in candidates:
            self.left -= 1
            try:
                if self.left < 0:
                    raise _Later
                found = candidate.find(QUICK_DECOMPRESSED)
            except CorruptRecord as error:  # or only too large
                raise _Later from error
            if found is not None:
                return found
        return None


class _Later(Exception):
    """Raised when a search would block the loop: it continues in a thread."""


class _Slow(NamedTuple):
    """A search that continues in a thread."""

    response: messages.ListOffsetsPartitionResponse
    partition: Partition
    candidates: Iterator[Candidate]
    end: int
    version: int


def handle(request: messages.ListOffsetsRequest, call: Call) -> MaybeAwaitable[messages.ListOffsetsResponse]:
    """Respond at once, except for lookups by timestamp that take long."""
    committed = request.isolation_level == 1
    searches = _Searches()
    response = messages.ListOffsetsResponse(
        topics=[
            messages.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_partition(call, topic.name, wanted, committed, searches) for wanted in topic.partitions]
                if call.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)
                else [_fault(one.partition_index, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for one in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    return _finish(response, searches.slow) if searches.slow else response


async def _finish(response: messages.ListOffsetsResponse, searches: list[_Slow]) -> messages.ListOffsetsResponse:
    for search in searches:
        found = None
        try:
            for candidate in search.candidates:
                found = await run_in_thread(candidate.find)
                if found is not None:
                    break
        except CorruptRecord as error:
            logger.error("%r: cannot look up the offset for a timestamp: %s", search.partition, error)
            search.response.error_code = ErrorCode.CORRUPT_MESSAGE
            continue
        visible = _visible(found, search.end, search.partition)
        if search.version == 0:
            search.response.old_style_offsets = [visible.offset if visible.offset >= 0 else search.end]
        else:
            _put(search.response, visible, search.version)
    return response


def _fault(index: int, code: ErrorCode) -> messages.ListOffsetsPartitionResponse:
    return messages.ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def _put(response: messages.ListOffsetsPartitionResponse, found: OffsetAndTimestamp, version: int) -> None:
    response.timestamp, response.offset = found.timestamp, found.offset
    response.leader_epoch = found.leader_epoch if version >= 4 else -1


def _visible(found: OffsetAndTimestamp | None, end: int, partition: Partition) -> OffsetAndTimestamp:
    if found is None or found.offset >= end:
        return UNKNOWN
    return OffsetAndTimestamp(found.offset, found.timestamp, partition.leader_epoch)


def _partition(
    call: Call, name: str, wanted: messages.ListOffsetsPartition, committed: bool, searches: _Searches
) -> messages.ListOffsetsPartitionResponse:
    index = wanted.partition_index
    partition = call.state.topics.partition(name, index)
    if partition is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif wanted.timestamp < 0 and call.version < SINCE.get(wanted.timestamp, 2**15):
        code = ErrorCode.UNSUPPORTED_VERSION
    else:
        code = partition_fault(call, partition) or epoch_fault(partition, wanted.current_leader_epoch)
    if partition is None or code is not ErrorCode.NONE:
        return _fault(index, code)
    response = messages.ListOffsetsPartitionResponse(partition_index=index)
    log = partition.log
    end = log.last_stable_offset if committed else log.high_watermark
    try:
        if call.version == 0:
            response.old_style_offsets = _old_style(partition, wanted, searches)
        else:
            _put(response, _find(partition, wanted.timestamp, end, searches), call.version)
    except _Later:
        rest = log.candidates(None if wanted.timestamp == MAX_TIMESTAMP else wanted.timestamp)
        searches.slow.append(_Slow(response, partition, rest, end, call.version))
    return response


def _find(partition: Partition, timestamp: int, end: int, searches: _Searches) -> OffsetAndTimestamp:
    log, epoch = partition.log, partition.leader_epoch
    if timestamp == LATEST:
        return OffsetAndTimestamp(end, -1, epoch)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        return OffsetAndTimestamp(log.log_start_offset, -1, epoch)
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        return UNKNOWN
    found = searches.first(log.candidates(None if timestamp == MAX_TIMESTAMP else timestamp))
    return _visible(found, end, partition)


def _old_style(partition: Partition, wanted: messages.ListOffsetsPartition, searches: _Searches) -> list[int]:
    log = partition.log
    if wanted.timestamp == EARLIEST:
        offsets = [log.log_start_offset]
    elif wanted.timestamp == LATEST:
        offsets = [log.high_watermark, log.log_start_offset]
    else:
        found = searches.first(log.candidates(wanted.timestamp))
        offsets = [found.offset if found is not None else log.high_watermark, log.log_start_offset]
    return list(dict.fromkeys(offsets))[: max(wanted.max_num_offsets, 0)]
