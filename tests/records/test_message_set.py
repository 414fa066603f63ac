"""Message formats 0 and 1: runs of plain messages, compressed sets, their offsets and times."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import CorruptRecord
from aiokwire.records import Record, compress, read_batches, scan_batches
from aiokwire.types import Compression, TimestampType
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import codecs_of, rows

MAGICS = st.sampled_from([0, 1])
ROWS = [Row(index, 1000 + index, b"k%d" % index, b"v%d" % index) for index in range(6)]


def expected(row: Row, magic: int, base_offset: int = 0) -> Record:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NONE
    timestamp = row.timestamp if magic else -1
    return Record("t", 1, base_offset + row.delta, timestamp, row.key, row.value, timestamp_type=kind)


def read_all(data: bytes) -> list[Record]:
    return [record for batch in read_batches(data, "t", 1) for record in batch.records()]


def wrapped(magic: int, inner: bytes, offset: int, codec: Compression, *, attributes: int = 0) -> bytes:
    return reference.message(magic, offset, 5000, None, compress(codec, inner, magic=magic), int(codec) | attributes)


@given(rows(headers=False, gaps=True), MAGICS, st.integers(0, 1 << 60), st.integers(0, 300))
def test_plain_messages_are_one_batch(records: list[Row], magic: int, base_offset: int, skipped: int) -> None:
    data = reference.message_set(magic, records, base_offset)
    (batch,) = read_batches(data, "t", 1)
    assert (batch.magic, batch.count, batch.size) == (magic, len(records), len(data))
    assert (batch.base_offset, batch.last_offset) == (base_offset + records[0].delta, base_offset + records[-1].delta)
    assert batch.max_timestamp == (max(row.timestamp for row in records) if magic else -1)
    assert batch.records() == [expected(row, magic, base_offset) for row in records]
    kept = [expected(row, magic, base_offset) for row in records if row.delta >= skipped]
    assert batch.records(base_offset + skipped) == kept
    assert batch.values(base_offset + skipped) == [record.value for record in kept]


@given(rows(headers=False, gaps=True), MAGICS, st.sampled_from(codecs_of(1)[1:]), st.integers(0, 1 << 60))
def test_compressed_sets_have_final_offsets_in_0_and_relative_ones_in_1(
    records: list[Row], magic: int, codec: Compression, base_offset: int
) -> None:
    inner = reference.message_set(magic, records, 0 if magic else base_offset)
    data = wrapped(magic, inner, base_offset + records[-1].delta, codec)
    (batch,) = read_batches(data, "t", 1)
    assert batch.next_offset == base_offset + records[-1].delta + 1
    assert batch.needs_decompression
    assert (batch.base_offset, batch.count) == (base_offset + records[0].delta, len(records))
    assert batch.records() == [expected(row, magic, base_offset) for row in records]


def test_a_compacted_set_keeps_its_last_offset() -> None:
    inner = reference.message_set(1, [ROWS[1], ROWS[4]])
    (batch,) = read_batches(wrapped(1, inner, 104, Compression.GZIP), "t", 1)
    assert [record.offset for record in batch.records()] == [101, 104]
    assert [record.offset for record in batch.records(102)] == [104]


def test_log_append_time_of_the_outer_message_covers_the_inner_ones() -> None:
    data = wrapped(1, reference.message_set(1, ROWS), 5, Compression.SNAPPY, attributes=8)
    assert {(record.timestamp, record.timestamp_type) for record in read_all(data)} == {
        (5000, TimestampType.LOG_APPEND_TIME)
    }


def test_plain_messages_have_append_times_of_their_own() -> None:
    data = b"".join(reference.message(1, row.delta, row.timestamp, None, b"", 8) for row in ROWS)
    assert [record.timestamp for record in read_all(data)] == [row.timestamp for row in ROWS]
    assert {record.timestamp_type for record in read_all(data)} == {TimestampType.LOG_APPEND_TIME}


def test_a_log_of_all_formats_is_read_in_one_go() -> None:
    parts = [
        reference.message_set(0, ROWS),
        wrapped(0, reference.message_set(0, ROWS, 10), 15, Compression.GZIP),
        reference.message_set(1, ROWS, 20),
        wrapped(1, reference.message_set(1, ROWS), 35, Compression.LZ4),
        reference.plain_batch(ROWS, base_offset=40),
    ]
    data = b"".join(parts)
    batches = read_batches(data, "t", 1)
    assert [batch.magic for batch in batches] == [0, 0, 1, 1, 2]
    assert [batch.position for batch in batches] == [sum(map(len, parts[:index])) for index in range(5)]
    assert [record.offset for record in read_all(data)] == [
        base + index for base in range(0, 50, 10) for index in range(6)
    ]


def test_a_cut_message_at_the_end_is_left_out() -> None:
    first, last = reference.message_set(1, ROWS[:5]), reference.message_set(1, ROWS[5:])
    for size in range(len(last)):
        assert len(read_all(first + last[:size])) == 5
        assert read_all(last[:size]) == []


def test_valid_messages_before_a_corrupt_one_are_returned() -> None:
    data = bytearray(reference.message_set(1, ROWS, 50))
    one = len(data) // 6
    data[4 * one - 1] ^= 1
    (batch,) = read_batches(data, "t", 1)
    assert batch.last_offset == 52
    with pytest.raises(CorruptRecord, match=r"t\[1\] at offset 53: the checksum"):
        read_batches(data[3 * one :], "t", 1)
    (scanned,) = scan_batches(data)
    with pytest.raises(CorruptRecord, match="checksum"):
        scanned.verify()


def test_a_corrupt_compressed_message_is_named() -> None:
    data = bytearray(wrapped(1, reference.message_set(1, ROWS), 35, Compression.GZIP))
    data[-1] ^= 1
    with pytest.raises(CorruptRecord, match=r"t\[1\] at offset 35: the checksum"):
        read_batches(data, "t", 1)


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (b"", "holds no messages"),
        (reference.message_set(1, ROWS)[:-1], "length does not fit"),
        (reference.message_set(0, ROWS), "another format"),
        (wrapped(1, reference.message_set(1, ROWS), 5, Compression.GZIP), "compressed twice"),
        (b"\xff" * 40, "length does not fit"),
    ],
)
def test_the_error_names_a_hostile_message_set(inner: bytes, message: str) -> None:
    (batch,) = read_batches(wrapped(1, inner, 35, Compression.GZIP), "t", 1)
    with pytest.raises(CorruptRecord, match=message) as caught:
        batch.records()
    assert caught.value.offset == 35


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        (8, 13, "length is impossible"),
        (8, 21, "length is impossible"),
        (8, -5, "length is impossible"),
        (26, 1 << 30, "key's length"),
        (26, -2, "key's length"),
        (32, 1 << 30, "value's length"),
        (32, -2, "value's length"),
    ],
)
def test_the_error_names_a_hostile_length(offset: int, value: int, message: str) -> None:
    data = bytearray(reference.message(1, 9, 1000, b"kk", b"value"))
    struct.pack_into(">i", data, offset, value)
    with pytest.raises(CorruptRecord, match=message):
        read_batches(data, "t", 1, check_crcs=False)


def test_a_compressed_message_needs_a_value() -> None:
    with pytest.raises(CorruptRecord, match="value's length"):
        read_batches(reference.message(1, 9, 1000, None, None, 1), "t", 1)


def test_old_formats_know_no_zstd_before_1_and_no_codec_above() -> None:
    with pytest.raises(CorruptRecord, match="codec is unknown"):
        read_batches(reference.message(0, 9, 0, None, b"x", 4), "t", 1)
    with pytest.raises(CorruptRecord, match="codec is unknown"):
        read_batches(reference.message(1, 9, 0, None, b"x", 5), "t", 1)
