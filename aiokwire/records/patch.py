"""Changes to sealed batches without decoding records: by the broker, and by a producer's retry.

Buffers may hold several consecutive batches of format 2. The checksum does not cover offsets and
leader epoch; any other change updates it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aiokwire.errors import CorruptRecord, InvalidArgument
from aiokwire.records._batch import RecordBatch, scan_batches
from aiokwire.records.checksum import crc32c

WritableBuffer = bytearray | memoryview

_LOG_APPEND_TIME = 8
_PLACE = struct.Struct(">qii")  # base offset, length, leader epoch


def _batches(buffer: WritableBuffer) -> list[RecordBatch]:
    batches = scan_batches(buffer)
    end = batches[-1].position + batches[-1].size if batches else 0
    if not batches or end != memoryview(buffer).nbytes:
        raise CorruptRecord(f"the batch at byte {end} is truncated")
    for batch in batches:
        if batch.magic != 2:
            raise InvalidArgument(f"only format 2 can be patched in place, not {batch.magic}: convert it")
    return batches


def _seal_again(buffer: WritableBuffer, batch: RecordBatch) -> None:
    start = batch.position
    view = memoryview(buffer)[start + 21 : start + batch.size]
    struct.pack_into(">I", buffer, start + 17, crc32c(view))


def assign_offsets(
    buffer: WritableBuffer, base_offset: int, leader_epoch: int, batches: Sequence[RecordBatch] | None = None
) -> int:
    """Assign offsets and leader epoch to batches; return the offset after the last one.

    `batches` are the `scan_batches` of `buffer`, all of format 2, when the caller has them.

    Raises: CorruptRecord: for a cut batch; InvalidArgument: for formats 0 and 1.
    """
    for batch in _batches(buffer) if batches is None else batches:
        _PLACE.pack_into(buffer, batch.position, base_offset, batch.size - 12, leader_epoch)
        base_offset += batch.next_offset - batch.base_offset
    return base_offset


def set_log_append_time(buffer: WritableBuffer, timestamp: int) -> None:
    """Set the broker's time as the timestamp of all records.

    Raises: CorruptRecord: for a cut batch; InvalidArgument: for formats 0 and 1.
    """
    for batch in _batches(buffer):
        struct.pack_into(">h", buffer, batch.position + 21, (batch.attributes | _LOG_APPEND_TIME) & 0x7FFF)
        struct.pack_into(">q", buffer, batch.position + 35, timestamp)
        _seal_again(buffer, batch)


def set_max_timestamp(buffer: WritableBuffer, timestamp: int) -> None:
    """Set the greatest timestamp in the header of one batch.

    Raises: CorruptRecord: for a cut batch; InvalidArgument: for formats 0 and 1 or several batches.
    """
    batches = _batches(buffer)
    if len(batches) != 1:
        raise InvalidArgument(f"the buffer must contain one batch to set its greatest timestamp, not {len(batches)}")
    struct.pack_into(">q", buffer, batches[0].position + 35, timestamp)
    _seal_again(buffer, batches[0])


def set_producer_state(buffer: WritableBuffer, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
    """Set producer id, epoch and first sequence of a sealed batch, after the epoch was bumped.

    Raises: CorruptRecord: for a cut batch; InvalidArgument: for formats 0 and 1 or several batches.
    """
    batches = _batches(buffer)
    if len(batches) != 1:
        raise InvalidArgument(f"the buffer must contain one batch to set its producer state, not {len(batches)}")
    struct.pack_into(">qhi", buffer, batches[0].position + 43, producer_id, producer_epoch, base_sequence)
    _seal_again(buffer, batches[0])
