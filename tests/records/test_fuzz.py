"""Hostile bytes: the kernel returns records or raises CorruptRecord, in bounded memory.

`integration/asan/run.py` runs these once more in a kernel that is built under AddressSanitizer,
where a read of one byte too many ends the process.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
import tracemalloc
import zlib

from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import Buffer

from aiokwire.errors import CorruptRecord, InvalidArgument
from aiokwire.records import (
    ArrowRows,
    Columns,
    RecordBatch,
    Spare,
    compress,
    convert,
    decompress,
    fill_columns,
    find_offset_for_timestamp,
    read_batches,
    scan_batches,
    take_sound,
    validate_records,
)
from aiokwire.records._columns import ArrowBuffer
from aiokwire.types import Compression
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import CODECS, CONTENTS, codecs_of, rows

LIMIT = 1 << 20
SPARE = Spare()
# lengths and counts that have broken parsers before, in both encodings
HOSTILE = st.sampled_from(
    [
        b"\xff" * 4,
        b"\x7f\xff\xff\xff",
        b"\x80\x00\x00\x00",
        b"\x7f" + b"\xff" * 7,
        b"\x80" * 10,
        b"\xff" * 9 + b"\x01",
        b"\xff" * 10,
        reference.varint(0x7FFFFFFF),
        reference.varint(-0x80000000),
        reference.varint((1 << 63) - 1),
        reference.varint(-(1 << 63)),
        reference.varint(-1),
        reference.varint(-2),
        b"\0" * 12,
    ]
)


def exact(data: bytes) -> memoryview:
    """`data` in exact-size memory (bytes have one more): a sanitizer sees the byte behind it."""
    return memoryview((ctypes.c_char * len(data)).from_buffer_copy(data)) if data else memoryview(b"")


def check_place(error: CorruptRecord) -> None:
    assert (error.topic, error.partition) == ("t", 5)


def in_spare_memory(batch: RecordBatch) -> None:
    """Twice into the same memory: what was good before a fault, and what a fault left half done."""
    for _ in range(2):
        columns = Columns(spare=SPARE)
        try:
            fill_columns(columns, [batch, batch], from_offset=min(batch.base_offset, 1 << 62) + 1)
        finally:
            for part in columns.buffers().values():
                for buffer in part if isinstance(part, tuple) else (part,):
                    if isinstance(buffer, ArrowBuffer):
                        memoryview(buffer).tobytes()


def use(batch: RecordBatch) -> None:
    """Every way of reading a batch."""
    readers = (
        batch.records,
        lambda: batch.records(min(batch.base_offset, 1 << 62) + 1),
        batch.values,
        lambda: batch.columns().buffers(),
        lambda: in_spare_memory(batch),
        lambda: validate_records(batch),
        lambda: find_offset_for_timestamp(batch, 1 << 40),
        lambda: batch.control_type,
        batch.verify,
        lambda: (batch.base_offset, batch.count, batch.last_sequence, batch.compression, repr(batch)),
    )
    for read in readers:
        try:
            read()
        except CorruptRecord as error:
            check_place(error)


def read_everything(data: bytes) -> None:
    for check_crcs in (True, False):
        try:
            batches = read_batches(exact(data), "t", 5, check_crcs=check_crcs, max_decompressed=LIMIT)
        except CorruptRecord as error:
            check_place(error)
            continue
        for batch in batches:
            use(batch)
    scan_batches(exact(data), stop_at_fault=True)
    take_sound(exact(data), len(data), 1 << 40, 0, 1 << 62, needs_keys=True)
    for magic in (0, 1, 2):
        with contextlib.suppress(CorruptRecord):
            convert(exact(data), magic)


def sealed(data: bytearray) -> bytes:
    """Return the corrupt bytes with a valid checksum, as a hostile peer would send them."""
    if len(data) > 61 and data[16] == 2:
        struct.pack_into(">I", data, 17, crc32c(data[21:]))
    elif len(data) > 17:
        struct.pack_into(">I", data, 12, zlib.crc32(data[16:]))
    return bytes(data)


@st.composite
def encoded(draw: st.DrawFn) -> bytes:
    """A valid batch or message set of any format and codec."""
    magic = draw(st.sampled_from([0, 1, 2, 2]))
    content = draw(rows(headers=magic == 2, gaps=True))
    codec = draw(st.sampled_from(codecs_of(magic)))
    if magic == 2:
        payload = compress(codec, b"".join(reference.record(row, content[0].timestamp) for row in content))
        attributes = int(codec) | draw(st.sampled_from([0, 8, 16, 48, 64]))
        return reference.batch(payload, content, attributes=attributes, base_offset=draw(st.integers(-1, 1 << 62)))
    inner = reference.message_set(magic, content)
    return (
        inner if not codec else reference.message(magic, 99, 7, None, compress(codec, inner, magic=magic), int(codec))
    )


@st.composite
def corrupt_batches(draw: st.DrawFn) -> bytes:
    """A valid one with some bytes changed, overwritten by hostile numbers, cut or repeated."""
    data = bytearray(draw(encoded()))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        if draw(st.booleans()):
            data[at] ^= draw(st.integers(1, 255))
        else:
            hostile = draw(HOSTILE)
            data[at : at + len(hostile)] = hostile
    if draw(st.booleans()):
        del data[draw(st.integers(0, len(data))) :]
    out = sealed(data) if draw(st.booleans()) else bytes(data)
    return out + draw(encoded()) if draw(st.booleans()) else out


@settings(max_examples=300)
@given(corrupt_batches())
def test_corrupt_bytes_are_read_as_records_or_raise_corrupt_record(data: bytes) -> None:
    read_everything(data)


@settings(max_examples=200)
@given(encoded(), st.data())
def test_any_cut_gives_records_or_a_corrupt_record(data: bytes, more: st.DataObject) -> None:
    read_everything(data[: more.draw(st.integers(0, len(data)))])


@settings(max_examples=300)
@given(st.lists(st.one_of(HOSTILE, st.binary(max_size=12)), min_size=1, max_size=12), CODECS, st.integers(-3, 1 << 31))
def test_hostile_payloads_under_a_valid_header(parts: list[bytes], codec: Compression, count: int) -> None:
    payload = compress(codec, b"".join(parts))
    data = bytearray(reference.batch(payload, [Row(1, 5, None, None)], attributes=int(codec), base_offset=9))
    struct.pack_into(">I", data, 57, count & 0xFFFFFFFF)
    read_everything(sealed(data))


# A length that is wrong by one or two is what a check that is wrong by one lets through.
LIES = st.lists(st.sampled_from([0, 0, 0, 1, 2, -1, 3]), min_size=8, max_size=8)


def lying(content: bytes | None, lie: int) -> bytes:
    size = -1 if content is None else len(content)
    return reference.varint(size + lie) + (content or b"")


@settings(max_examples=400)
@given(st.lists(LIES, min_size=1, max_size=3), rows())
def test_lengths_that_lie_a_little(lies: list[list[int]], content: list[Row]) -> None:
    payload = b""
    for row, lie in zip(content, [[0] * 8] * (len(content) - len(lies)) + lies, strict=False):
        body = b"\0\0" + reference.varint(row.delta) + lying(row.key, lie[0]) + lying(row.value, lie[1])
        body += reference.varint(len(row.headers) + lie[2])
        for name, value in row.headers:
            body += lying(name.encode(), lie[3]) + lying(value, lie[4])
        cut = max(len(body) - max(lie[5], 0), 1)
        payload += reference.varint(len(body) - lie[5] + lie[6]) + body[:cut]
    read_everything(reference.batch(payload, content, base_offset=9))


@settings(max_examples=300)
@given(LIES, CONTENTS, CONTENTS, st.sampled_from([0, 1]))
def test_message_lengths_that_lie_a_little(lie: list[int], key: bytes | None, value: bytes | None, magic: int) -> None:
    data = reference.message(magic, 9, 7, key, value)
    at = 26 if magic else 18
    key_size, value_size = (-1 if part is None else len(part) for part in (key, value))
    behind = at + 4 + max(key_size, 0)
    changed = bytearray(data)
    struct.pack_into(">i", changed, at, key_size + lie[0])
    struct.pack_into(">i", changed, behind, value_size + lie[1])
    struct.pack_into(">i", changed, 8, len(data) - 12 + lie[2])
    read_everything(sealed(changed))
    read_everything(reference.message(magic, 9, 7, None, compress(Compression.GZIP, changed), 1))


@settings(max_examples=300)
@given(
    st.lists(st.one_of(HOSTILE, st.binary(max_size=12)), max_size=12), st.sampled_from([0, 1]), st.integers(0, 1 << 31)
)
def test_hostile_message_sets(parts: list[bytes], magic: int, size: int) -> None:
    inner = b"".join(parts)
    for codec in codecs_of(1)[1:]:
        read_everything(reference.message(magic, 99, 7, None, compress(codec, inner, magic=magic), int(codec)))
    data = bytearray(reference.message(magic, 99, 7, b"key", inner))
    struct.pack_into(">I", data, 8, size & 0xFFFFFFFF)
    read_everything(sealed(data))


@settings(max_examples=400)
@given(st.binary(max_size=200), st.integers(0, 7))
def test_arbitrary_bytes_never_crash(data: bytes, codec: int) -> None:
    read_everything(data)
    with contextlib.suppress(CorruptRecord):
        assert len(decompress(codec, data, LIMIT)) <= LIMIT


@settings(max_examples=300)
@given(st.sampled_from(list(Compression)[1:]), st.binary(max_size=2000), st.data())
def test_corrupt_codec_data_stays_within_the_limit(codec: Compression, plain: bytes, more: st.DataObject) -> None:
    packed = bytearray(compress(codec, plain))
    for _ in range(more.draw(st.integers(1, 4))):
        packed[more.draw(st.integers(0, len(packed) - 1))] = more.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptRecord):
        assert len(decompress(codec, packed, LIMIT)) <= LIMIT


def test_hostile_counts_and_sizes_allocate_nothing() -> None:
    claims = []
    for codec in Compression:
        data = bytearray(reference.batch(compress(codec, bytes(7)), [Row(0, 5, None, None)], attributes=int(codec)))
        struct.pack_into(">i", data, 57, 0x7FFFFFFF)
        claims.append(sealed(data))
    # a snappy block, an lz4 frame and a zstd frame that claim gigabytes
    for codec, claim in (
        (Compression.SNAPPY, b"\xff\xff\xff\xff\x07" + bytes(200)),
        (Compression.LZ4, b"\x04\x22\x4d\x18\x68\x40" + struct.pack("<Q", 1 << 40) + bytes(200)),
        (Compression.ZSTD, b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 40) + bytes(200)),
    ):
        claims.append(reference.batch(claim, [Row(0, 5, None, None)], attributes=int(codec)))
    for claim in claims:
        read_everything(claim)  # once before, so that no codec is loaded in between
    tracemalloc.start()
    try:
        for claim in claims:
            read_everything(claim)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20


def values_of(found: dict[int, list[Buffer]]) -> list[bytes | None]:
    return [value for parts in found.values() for part in parts for value in read_batches(part, "t", 0)[0].values()]


@given(st.integers(0, 40), st.integers(0, 9), st.integers(0, 9), st.lists(st.integers(-50, 50), max_size=10))
def test_offsets_that_lie_never_read_outside_of_the_data(size: int, count: int, first: int, offsets: list[int]) -> None:
    """Arrow arrays can have arbitrary buffers: their offsets are refused or lie within the data."""
    raw = b"".join(offset.to_bytes(4, "little", signed=True) for offset in offsets)
    try:
        found = ArrowRows(count, value=(None, raw, first, b"x" * size, False)).encode(1, 0)
    except InvalidArgument:
        return
    assert sum(len(value or b"") for value in values_of(found)) <= count * size


@given(st.lists(st.integers(-3, 6), min_size=3, max_size=3), st.binary(max_size=2))
def test_lists_that_lie_are_refused_or_hold(offsets: list[int], validity: bytes) -> None:
    raw = b"".join(offset.to_bytes(4, "little", signed=True) for offset in offsets)
    text = (None, b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0", 0, b"abc", False)
    try:
        found = ArrowRows(2, headers=((validity or None, raw, 0, False), 3, text, text)).encode(1, 0)
    except InvalidArgument:
        return
    (batch,) = read_batches(found[0][0], "t", 0)
    for record in batch.records():
        assert {name for name, _ in record.headers} <= {"a", "b", "c"}
