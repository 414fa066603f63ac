"""WriteTxnMarkers: v0-2

Ends a producer's transaction in single partitions: `kafka-transactions abort` ends a hanging one.

Version notes:
- v2: the version of the transaction, which is ignored
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from aiokwire.broker.dispatch import Call
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.protocol.messages import write_txn_markers as messages
from aiokwire.types import TopicPartition

logger: logging.Logger = logging.getLogger(__name__)


def handle(request: messages.WriteTxnMarkersRequest, call: Call) -> messages.WriteTxnMarkersResponse:
    """Respond at once."""
    return _response(request, lambda marker, tp: _write(marker, tp, call))


def refuse(request: messages.WriteTxnMarkersRequest, version: int, code: ErrorCode) -> messages.WriteTxnMarkersResponse:
    """Return an error for each partition."""
    return _response(request, lambda marker, tp: code)


def _response(
    request: messages.WriteTxnMarkersRequest, code_of: Callable[[messages.WritableTxnMarker, TopicPartition], ErrorCode]
) -> messages.WriteTxnMarkersResponse:
    return messages.WriteTxnMarkersResponse(
        markers=[
            messages.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    messages.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            messages.WritableTxnMarkerPartitionResult(
                                partition_index=index,
                                error_code=code_of(marker, TopicPartition(topic.name, index)),
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _write(marker: messages.WritableTxnMarker, tp: TopicPartition, call: Call) -> ErrorCode:
    try:
        return call.state.transactions.markers.write(
            tp,
            marker.producer_id,
            marker.producer_epoch,
            commit=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            now_ms=wall_ms(),
        )
    except StorageError as error:
        logger.error("%s[%d]: cannot write a transaction marker: %s", *tp, error)
        return ErrorCode.KAFKA_STORAGE_ERROR
