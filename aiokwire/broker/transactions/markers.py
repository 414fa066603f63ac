"""Markers: the control batches that end a transaction in one partition.

Written by the coordinator, and on request of the tool that aborts hanging transactions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from aiokwire.broker.topic_registry import TopicRegistry
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError
from aiokwire.records import BatchBuilder
from aiokwire.types import TopicPartition

_KEY = struct.Struct(">hh")  # version, type
_VALUE = struct.Struct(">hi")  # version, coordinator epoch
_ABORT, _COMMIT = 0, 1
_SIZE = 256

# Called once a marker is in the log: partition, producer id, whether it commits.
Listener = Callable[[TopicPartition, int, bool], None]


def encode_marker(producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int, now_ms: int) -> bytearray:
    """Return a control batch."""
    builder = BatchBuilder(2, _SIZE)
    builder.append(now_ms, _KEY.pack(0, _COMMIT if commit else _ABORT), _VALUE.pack(0, coordinator_epoch))
    return bytearray(builder.seal(producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True))


class Markers:
    """Writes markers to partitions of this broker."""

    def __init__(self, topics: TopicRegistry, listener: Listener) -> None:
        self._topics = topics
        self._listener = listener

    def write(
        self, tp: TopicPartition, producer_id: int, epoch: int, *, commit: bool, coordinator_epoch: int, now_ms: int
    ) -> ErrorCode:
        """Append a marker and notify waiting fetches.

        Raises: StorageError: nothing was appended.
        """
        partition = self._topics.partition(*tp)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        known = partition.log.producers.states.get(producer_id)
        if known is not None and coordinator_epoch < known.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        data = encode_marker(producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch, now_ms=now_ms)
        try:
            partition.log.append(data, now_ms=now_ms, leader_epoch=partition.leader_epoch, from_client=False)
        except BrokerError as error:
            return error.code
        self._listener(tp, producer_id, commit)
        partition.changed()
        return ErrorCode.NONE
