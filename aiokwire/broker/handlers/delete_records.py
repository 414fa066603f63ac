"""DeleteRecords: v0-2

Moves the start of partitions up; -1 means their end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import narrowed, split_topics
from aiokwire.broker.security import AclOperation
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import OffsetOutOfRange, StorageError
from aiokwire.protocol.messages import delete_records as messages

logger: logging.Logger = logging.getLogger(__name__)


def handle(request: messages.DeleteRecordsRequest, call: Call) -> messages.DeleteRecordsResponse:
    """Respond at once; the next retention removes the files."""
    if call.state.authorizer is not None:
        allowed, denied = split_topics(call, AclOperation.DELETE, request.topics)
        if denied:
            rows = refuse(narrowed(request, denied), call.version, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            response = _response(narrowed(request, allowed), lambda name, wanted: _partition(call, name, wanted))
            response.topics += rows.topics
            return response
    return _response(request, lambda name, wanted: _partition(call, name, wanted))


def refuse(request: messages.DeleteRecordsRequest, version: int, code: ErrorCode) -> messages.DeleteRecordsResponse:
    """Return an error for each partition."""
    return _response(request, lambda name, wanted: _fault(wanted.partition_index, code))


def _response(
    request: messages.DeleteRecordsRequest,
    result_of: Callable[[str, messages.DeleteRecordsPartition], messages.DeleteRecordsPartitionResult],
) -> messages.DeleteRecordsResponse:
    return messages.DeleteRecordsResponse(
        topics=[
            messages.DeleteRecordsTopicResult(
                name=topic.name, partitions=[result_of(topic.name, wanted) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _partition(call: Call, name: str, wanted: messages.DeleteRecordsPartition) -> messages.DeleteRecordsPartitionResult:
    index = wanted.partition_index
    topic = call.state.topics.get(name)
    partition = topic.partition(index) if topic is not None else None
    if topic is None or partition is None:
        return _fault(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.is_internal:
        return _fault(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if not topic.log_config.deletes:
        return _fault(index, ErrorCode.POLICY_VIOLATION)
    try:
        low = partition.log.delete_records(wanted.offset)
    except OffsetOutOfRange:
        return _fault(index, ErrorCode.OFFSET_OUT_OF_RANGE)
    except StorageError as error:
        logger.error("%s[%d]: %s", name, index, error)
        return _fault(index, ErrorCode.KAFKA_STORAGE_ERROR)
    partition.changed()
    return messages.DeleteRecordsPartitionResult(partition_index=index, low_watermark=low)


def _fault(index: int, code: ErrorCode) -> messages.DeleteRecordsPartitionResult:
    return messages.DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1, error_code=code)
