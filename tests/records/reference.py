"""Kafka's three message formats, written as slowly and plainly as their description reads.

The oracle of the kernel's tests: nothing here is shared with the kernel but the checksum and codec
libraries.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from crc32c import crc32c

Header = tuple[str, bytes | None]


class Row(NamedTuple):
    """A record as the formats know it; `delta` is its offset relative to the batch's."""

    delta: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def varint(number: int) -> bytes:
    """Zigzag, then seven bits a byte, the lowest first."""
    number = number * 2 if number >= 0 else -number * 2 - 1
    out = bytearray()
    while number > 127:
        out.append(number % 128 + 128)
        number //= 128
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number and where the next thing starts."""
    number, factor = 0, 1
    while True:
        byte = data[at]
        at += 1
        number += byte % 128 * factor
        if byte < 128:
            return (number // 2 if number % 2 == 0 else -(number // 2) - 1), at
        factor *= 128


def sized(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content


def record(row: Row, base_timestamp: int) -> bytes:
    body = b"\0" + varint(row.timestamp - base_timestamp) + varint(row.delta) + sized(row.key) + sized(row.value)
    body += varint(len(row.headers))
    for name, content in row.headers:
        body += sized(name.encode()) + sized(content)
    return varint(len(body)) + body


def batch(
    payload: bytes,
    rows: list[Row],
    *,
    attributes: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer: tuple[int, int, int] = (-1, -1, -1),
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
) -> bytes:
    """A batch of format 2 around `payload`: the rows' `record`s, compressed or not."""
    covered = struct.pack(
        ">hiqqqhii",
        attributes,
        rows[-1].delta,
        rows[0].timestamp if base_timestamp is None else base_timestamp,
        max(row.timestamp for row in rows) if max_timestamp is None else max_timestamp,
        *producer,
        len(rows),
    )
    covered += payload
    return struct.pack(">qiibI", base_offset, 9 + len(covered), leader_epoch, 2, crc32c(covered)) + covered


def plain_batch(rows: list[Row], **options: int) -> bytes:
    payload = b"".join(record(row, rows[0].timestamp) for row in rows)
    return batch(payload, rows, **options)  # type: ignore[arg-type]  # only the numeric options are passed on


def read_batch(data: bytes) -> list[Row]:
    """The rows of one uncompressed batch of format 2."""
    base_timestamp, count = struct.unpack_from(">q", data, 27)[0], struct.unpack_from(">i", data, 57)[0]
    at, rows = 61, []
    for _ in range(count):
        size, at = read_varint(data, at)
        end = at + size
        timestamp, at = read_varint(data, at + 1)
        delta, at = read_varint(data, at)
        key, at = _read_sized(data, at)
        value, at = _read_sized(data, at)
        header_count, at = read_varint(data, at)
        headers: list[Header] = []
        for _ in range(header_count):
            name, at = _read_sized(data, at)
            content, at = _read_sized(data, at)
            assert name is not None
            headers.append((name.decode(), content))
        assert at == end
        rows.append(Row(delta, base_timestamp + timestamp, key, value, tuple(headers)))
    assert at == len(data)
    return rows


def _read_sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def message(
    magic: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None, attributes: int = 0
) -> bytes:
    """A message of format 0 or 1."""
    covered = struct.pack(">bb", magic, attributes)
    if magic == 1:
        covered += struct.pack(">q", timestamp)
    for part in (key, value):
        covered += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, 4 + len(covered), zlib.crc32(covered)) + covered


def message_set(magic: int, rows: list[Row], base_offset: int = 0) -> bytes:
    return b"".join(message(magic, base_offset + row.delta, row.timestamp, row.key, row.value) for row in rows)
