"""Errors for corrupt data, with the offset to which to seek to skip it. No I/O.

Only a seek skips corrupt data. The end of a corrupt batch is a guess, as its header may be corrupt:
the next intact batch in the response, else the end in a plausible header, else the next offset.
"""

from __future__ import annotations

from typing import Final

from aiokwire.consumer.positions import PartitionState
from aiokwire.errors import CorruptRecord
from aiokwire.records import read_batches

_LENGTH_AT: Final = 8  # of a batch, and of a message of the formats 0 and 1: after the offset
_PREFIX: Final = 12  # offset and length, which the length does not include
_MAGIC_AT: Final = 16
_LAST_OFFSET_DELTA_AT: Final = 23
_SMALLEST_BATCH: Final = 61
_COUNT_AT: Final = 57


def offset_behind(records: bytes | bytearray | memoryview, position: int) -> int:
    """Return the offset after the corrupt batch that begins `records`, fetched for `position`."""
    data = memoryview(records).cast("B")
    if len(data) < _PREFIX:
        return position + 1
    size = _PREFIX + int.from_bytes(data[_LENGTH_AT:_PREFIX], "big", signed=True)
    if _PREFIX < size < len(data):
        try:
            follows = read_batches(data[size:], "", -1)
        except CorruptRecord:
            follows = []
        if follows and follows[0].base_offset > position:
            return follows[0].base_offset
    if len(data) >= _SMALLEST_BATCH and data[_MAGIC_AT] == 2:
        base = int.from_bytes(data[:_LENGTH_AT], "big", signed=True)
        delta = int.from_bytes(data[_LAST_OFFSET_DELTA_AT : _LAST_OFFSET_DELTA_AT + 4], "big", signed=True)
        count = int.from_bytes(data[_COUNT_AT:_SMALLEST_BATCH], "big", signed=True)
        if count == delta + 1 and base <= position <= base + delta:  # both fields agree
            return base + delta + 1
    return position + 1


def corrupt_record(state: PartitionState, reason: CorruptRecord | str, offset: int, next_offset: int) -> CorruptRecord:
    """Return the error for the reader, which raises it again on each read until a seek."""
    topic, partition = state.tp
    what = str(reason).removeprefix(f"{state.tp} at offset {offset}: ")
    error = CorruptRecord(
        f"{what}; to skip the corrupt data, seek to {next_offset}",
        topic=topic,
        partition=partition,
        offset=offset,
        next_offset=next_offset,
    )
    if isinstance(reason, CorruptRecord):
        error.__cause__ = reason
    return error
