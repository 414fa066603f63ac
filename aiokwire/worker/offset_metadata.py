"""The metadata of a commit: which offsets beyond the committed one are finished, as text.

`aiokwire1:` and unpadded base64 of a byte for the kind, then either varints (the lengths of
unfinished and finished runs in turn, from the committed offset on) or a bitmap (bit n: the
committed offset plus n is finished). Metadata of other clients has no such prefix.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Final

from aiokwire.worker.completed_offsets import OffsetRange

PREFIX: Final = "aiokwire1:"
RUNS: Final = 0
BITMAP: Final = 1
# The default of a broker's `offset.metadata.max.bytes`.
MAX_LENGTH: Final = 4096
# No bitmap that brokers accept is this long; a foreign one is not expanded.
_MAX_BITS: Final = 8 * 64 * 1024


def encode_ranges(offset: int, ranges: Sequence[OffsetRange], limit: int = MAX_LENGTH) -> str:
    """Return the metadata of a commit at `offset`: at most `limit` characters; "" without ranges.

    `ranges` are in order, beyond `offset`, and do not touch. If they do not fit, the lowest ones
    that fit are kept: the others are handled again after a restart.
    """
    room = (limit - len(PREFIX)) * 3 // 4 - 1
    if not ranges or room < 1:
        return ""
    runs, run_count = _runs(offset, ranges, room)
    bits, bit_count = _bitmap(offset, ranges, room)
    if not run_count and not bit_count:
        return ""
    kind, data = (RUNS, runs) if (run_count, -len(runs)) >= (bit_count, -len(bits)) else (BITMAP, bits)
    return PREFIX + base64.b64encode(bytes([kind]) + data).rstrip(b"=").decode()


def decode_ranges(offset: int, metadata: str) -> list[OffsetRange]:
    """Return the ranges beyond a committed `offset`, in order; none if the metadata is foreign."""
    if not metadata.startswith(PREFIX):
        return []
    text = metadata[len(PREFIX) :]
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        if data[0] == RUNS:
            return _from_runs(offset, data)
        return _from_bitmap(offset, data) if data[0] == BITMAP and len(data) * 8 <= _MAX_BITS else []
    except (binascii.Error, IndexError, ValueError):
        return []  # of a later version, or corrupt: the records are handled again


# --- runs -------------------------------------------------------------------------------------------------------------


def _runs(offset: int, ranges: Iterable[OffsetRange], room: int) -> tuple[bytes, int]:
    """Return run lengths within `room` bytes, and the number of offsets that they cover."""
    data = bytearray()
    after, covered = offset, 0
    for start, end in ranges:
        pair = _varint(start - after) + _varint(end - start)
        if len(data) + len(pair) > room:
            break
        data += pair
        covered += end - start
        after = end
    return bytes(data), covered


def _from_runs(offset: int, data: bytes) -> list[OffsetRange]:
    found: list[OffsetRange] = []
    place, after = 1, offset
    while place < len(data):
        unfinished, place = _read_varint(data, place)
        finished, place = _read_varint(data, place)
        start = after + unfinished
        after = start + finished
        if (unfinished < 1 and found) or finished < 1 or after >= 1 << 63:
            raise ValueError("no encoder writes such runs")
        found.append(OffsetRange(start, after))
    return found


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Raises: IndexError: the bytes end too early; ValueError: more than 64 bits."""
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


# --- bitmap -----------------------------------------------------------------------------------------------------------


def _bitmap(offset: int, ranges: Iterable[OffsetRange], room: int) -> tuple[bytes, int]:
    """Return a bitmap of at most `room` bytes, and the number of offsets that it covers."""
    bits = covered = 0
    for start, end in ranges:
        last = min(end - offset, room * 8)
        if start - offset >= last:
            break
        bits |= ((1 << (last - (start - offset))) - 1) << (start - offset)
        covered += last - (start - offset)
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little"), covered


def _from_bitmap(offset: int, data: bytes) -> list[OffsetRange]:
    text = f"{int.from_bytes(data[1:], 'little'):b}"[::-1]
    found: list[OffsetRange] = []
    end = 0
    while (start := text.find("1", end)) >= 0:
        end = text.find("0", start)
        if end < 0:
            end = len(text)
        found.append(OffsetRange(offset + start, offset + end))
    return found
