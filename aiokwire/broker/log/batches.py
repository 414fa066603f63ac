"""Batch headers in a segment file, read without their records.

The log needs only these 61 bytes: lookups walk from an index entry to the batch, recovery walks all
batches and checks each CRC. Only format 2 is stored.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from aiokwire.broker.log.storage import StoredFile
from aiokwire.errors import CorruptRecord
from aiokwire.records import crc32c

# base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp, max timestamp,
# producer id, producer epoch, base sequence, count
HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
_SPAN = struct.Struct(">qi11xi")  # only base offset, length and last offset delta
FRAME = 12  # bytes of base offset and length, which the length does not count
CRC_COVERS = 21  # the first byte that the CRC covers

LOOKUP_WINDOW = 4096 + HEADER_SIZE  # the index is at least that dense, by default
SCAN_WINDOW = 1 << 20

_TRANSACTIONAL = 0x10
_CONTROL = 0x20


class Batch(Protocol):
    """The header fields that the log reads, of a stored batch or one to be appended."""

    @property
    def base_offset(self) -> int: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def max_timestamp(self) -> int: ...
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...


class StoredBatch(NamedTuple):
    """The header of a batch in a segment; `position` is its start in the file."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL)


def walk(file: StoredFile, position: int, end: int, *, verify: bool = False) -> Iterator[StoredBatch]:
    """Yield the batches from `position`, the start of a batch, up to `end`.

    Stops before the first that is truncated or invalid or, with `verify`, has a wrong CRC.
    """
    window, window_start, window_size = b"", position, SCAN_WINDOW if verify else LOOKUP_WINDOW
    while end - position >= HEADER_SIZE:
        at = position - window_start
        if at + HEADER_SIZE > len(window):
            window, window_start, at = file.pread(min(window_size, end - position), position), position, 0
            if len(window) < HEADER_SIZE:
                return
        base, length, epoch, magic, crc, attributes, delta, _, latest, pid, pid_epoch, sequence, count = (
            HEADER.unpack_from(window, at)
        )
        size = length + FRAME
        if magic != 2 or size < HEADER_SIZE or position + size > end or base < 0 or delta < 0 or count < 0:
            return
        if verify:
            if at + size > len(window):
                window = file.pread(min(max(window_size, size), end - position), position)
                window_start, at = position, 0
            if crc32c(memoryview(window)[at + CRC_COVERS : at + size]) != crc:
                return
        yield StoredBatch(position, size, base, base + delta, epoch, attributes, latest, pid, pid_epoch, sequence)
        position += size


class Damage(NamedTuple):
    """Why a segment cannot be read from some byte on."""

    cause: str
    is_torn: bool  # the file ends within a batch: its append did not finish, or the rest was lost
    end_offset: int  # after the last record found after the corrupt bytes, or where these start if there is none


def diagnose(file: StoredFile, position: int, end: int, expected: int) -> Damage:
    """Return the error at `position`, where a batch with base offset `expected` should start.

    Raises: StorageError.
    """
    head = file.pread(min(HEADER_SIZE, end - position), position)
    if not any(head):
        return Damage(f"zeros at byte {position} where a batch should begin", False, expected)
    if len(head) < HEADER_SIZE:
        return Damage(f"the batch at byte {position} is truncated", True, expected)
    fields = HEADER.unpack(head)
    base, size, magic = fields[0], fields[1] + FRAME, fields[3]
    if magic == 2 and base == expected and position + size > end:
        return Damage(f"the batch at byte {position} is truncated", True, expected)
    following = next(walk(file, position, end), None)
    if following is None:
        return Damage(f"the bytes at {position} are not a batch", False, expected)
    behind = max((batch.last_offset for batch in walk(file, position, end) if batch.base_offset >= expected), default=0)
    if base != expected:
        cause = f"the batch at byte {position} has offset {base} instead of {expected}"
    else:
        cause = f"the CRC of the batch at offset {base}, byte {position}, is wrong"
    return Damage(cause, False, max(behind + 1, expected))


def find(file: StoredFile, position: int, end: int, offset: int) -> StoredBatch | None:
    """Return the first batch from `position` on that ends at or after `offset`, with few reads."""
    window, window_start = b"", position
    while end - position >= HEADER_SIZE:
        at = position - window_start
        if at + HEADER_SIZE > len(window):
            window, window_start, at = file.pread(min(LOOKUP_WINDOW, end - position), position), position, 0
            if len(window) < HEADER_SIZE:
                return None
        base, length, delta = _SPAN.unpack_from(window, at)
        if base + delta >= offset:
            return next(walk(file, position, end), None)
        if length < HEADER_SIZE - FRAME:
            return None
        position += length + FRAME
    return None


class Marker(NamedTuple):
    """The end of a transaction, as its coordinator wrote it."""

    is_commit: bool
    coordinator_epoch: int


def read_marker(batch: bytes | bytearray | memoryview) -> Marker | None:
    """Return the marker in a control batch, None if it does not end a transaction.

    Raises: CorruptRecord.
    """
    try:
        at = HEADER_SIZE
        _, at = _varint(batch, at)  # the record's length
        at += 1  # its attributes
        _, at = _varint(batch, at)  # timestamp delta
        _, at = _varint(batch, at)  # offset delta
        key_size, at = _varint(batch, at)
        _, kind = struct.unpack_from(">hh", batch, at)
        _, at = _varint(batch, at + key_size)
        _, coordinator_epoch = struct.unpack_from(">hi", batch, at)
    except (IndexError, struct.error) as error:
        raise CorruptRecord("a control batch is truncated") from error
    return Marker(kind == 1, coordinator_epoch) if kind in (0, 1) else None


def _varint(data: bytes | bytearray | memoryview, at: int) -> tuple[int, int]:
    """Return a zigzag number and the position after it."""
    value, at = unsigned_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def unsigned_varint(data: bytes | bytearray | memoryview, at: int) -> tuple[int, int]:
    """Return a number and the position after it.

    Raises: IndexError: it is truncated.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
