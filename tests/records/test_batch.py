"""RecordBatch reads the reference's bytes: whole, filtered, truncated and corrupt ones."""

from __future__ import annotations

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import CorruptRecord, InvalidArgument
from aiokwire.records import BatchBuilder, Record, RecordBatch, _batch, compress, decompress, read_batches, scan_batches
from aiokwire.types import Compression, TimestampType
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import CODECS, rows

ROWS = [Row(index, 1000 + index, b"k%d" % index, b"v%d" % index, (("h", b"x"), ("n", None))) for index in range(10)]


def expected(row: Row, base_offset: int = 0, leader_epoch: int = -1) -> Record:
    return Record(
        "t", 3, base_offset + row.delta, row.timestamp, row.key, row.value, row.headers, leader_epoch=leader_epoch
    )


def read_one(data: bytes) -> RecordBatch:
    (batch,) = read_batches(data, "t", 3)
    return batch


@given(rows(gaps=True), CODECS, st.integers(0, 1 << 60), st.integers(0, 300))
def test_records_are_those_of_the_reference(
    records: list[Row], codec: Compression, base_offset: int, skipped: int
) -> None:
    payload = compress(codec, b"".join(reference.record(row, records[0].timestamp) for row in records))
    data = reference.batch(payload, records, attributes=int(codec), base_offset=base_offset, leader_epoch=8)
    batch = read_one(data)
    assert batch.needs_decompression == (codec is not Compression.NONE)
    assert batch.records() == [expected(row, base_offset, 8) for row in records]
    assert not batch.needs_decompression
    kept = [row for row in records if row.delta >= skipped]
    assert batch.records(base_offset + skipped) == [expected(row, base_offset, 8) for row in kept]
    assert batch.values(base_offset + skipped) == [row.value for row in kept]
    assert (batch.base_offset, batch.next_offset) == (base_offset, base_offset + records[-1].delta + 1)


def test_the_header_is_read() -> None:
    data = reference.batch(
        reference.record(Row(0, 50, None, None), 40),
        [Row(0, 50, None, None)],
        attributes=16 | 64,
        base_offset=7,
        leader_epoch=2,
        producer=(12, 3, 0x7FFFFFFF),
        base_timestamp=40,
    )
    batch = read_one(data)
    assert (batch.magic, batch.leader_epoch, batch.count, batch.size, batch.position) == (2, 2, 1, len(data), 0)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (12, 3, 0x7FFFFFFF)
    assert (batch.base_timestamp, batch.max_timestamp, batch.delete_horizon) == (40, 50, 40)
    assert (batch.is_transactional, batch.is_control, batch.control_type) == (True, False, None)
    assert batch.compression is Compression.NONE
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert bytes(batch.data) == data
    assert batch.records()[0].timestamp == 50


def test_sequence_numbers_wrap() -> None:
    options = {"producer": (1, 0, 0x7FFFFFFE)}
    payload = b"".join(reference.record(row, 1000) for row in ROWS)
    assert read_one(reference.batch(payload, ROWS, **options)).last_sequence == 7  # type: ignore[arg-type]  # a tuple
    assert read_one(reference.plain_batch(ROWS)).last_sequence == -1


def test_log_append_time_is_every_records_time() -> None:
    batch = read_one(reference.plain_batch(ROWS, attributes=8, max_timestamp=77))
    assert {(record.timestamp, record.timestamp_type) for record in batch.records()} == {
        (77, TimestampType.LOG_APPEND_TIME)
    }


@pytest.mark.parametrize("kind", [0, 1])
def test_control_batches_have_a_kind(kind: int) -> None:
    marker = Row(0, 5, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 9))
    batch = read_one(reference.plain_batch([marker], attributes=16 | 32))
    assert (batch.is_control, batch.control_type) == (True, kind)


def test_a_control_record_without_a_type_is_corrupt() -> None:
    batch = read_one(reference.plain_batch([Row(0, 5, b"", b"")], attributes=32, base_offset=6))
    with pytest.raises(CorruptRecord, match=r"t\[3\] at offset 6: a control record has no type"):
        _ = batch.control_type


def test_a_batch_that_compaction_emptied_is_kept() -> None:
    data = bytearray(reference.batch(b"", ROWS, base_offset=5))
    struct.pack_into(">i", data, 57, 0)
    (batch,) = scan_batches(data)
    assert (batch.count, batch.base_offset, batch.next_offset, batch.records()) == (0, 5, 15, [])


def test_a_cut_batch_at_the_end_is_left_out() -> None:
    data = reference.plain_batch(ROWS)
    for size in range(len(data)):
        assert read_batches(data[:size], "t", 3) == []
        assert [batch.size for batch in read_batches(data + data[:size], "t", 3)] == [len(data)]
    assert read_batches(None, "t", 3) == []


def test_valid_batches_before_a_corrupt_one_are_returned() -> None:
    good, bad = reference.plain_batch(ROWS), bytearray(reference.plain_batch(ROWS, base_offset=10))
    bad[-1] ^= 1
    assert [batch.next_offset for batch in read_batches(good + bad, "t", 3)] == [10]
    with pytest.raises(CorruptRecord, match=r"t\[3\] at offset 10: the checksum does not match") as caught:
        read_batches(bad, "t", 3)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 3, 10)
    assert len(read_batches(bad, "t", 3, check_crcs=False)) == 1
    assert scan_batches(bad, check_crcs=True, stop_at_fault=True) == []
    assert len(scan_batches(good + bad)) == 2


def test_verify_checks_a_scanned_batch() -> None:
    data = bytearray(reference.plain_batch(ROWS, base_offset=4))
    (batch,) = scan_batches(data)
    assert batch.verify()
    data[70] ^= 1
    with pytest.raises(CorruptRecord, match="checksum"):
        batch.verify()


@pytest.mark.parametrize(
    ("offset", "form", "value", "message"),
    [
        (8, ">i", 48, "length is impossible"),
        (8, ">i", -1, "length is impossible"),
        (16, ">b", 3, "format is unknown"),
        (16, ">b", -1, "format is unknown"),
        (21, ">h", 5, "codec is unknown"),
        (57, ">i", -1, "number of records"),
        (57, ">i", 1 << 30, "number of records"),
        (57, ">i", 9, "left over behind the record"),
        (57, ">i", 11, "length does not fit the batch"),
        (23, ">i", -1, "number of records"),
    ],
)
def test_the_error_names_a_hostile_header(offset: int, form: str, value: int, message: str) -> None:
    data = bytearray(reference.plain_batch(ROWS, base_offset=40))
    struct.pack_into(form, data, offset, value)
    with pytest.raises(CorruptRecord, match=message) as caught:
        [batch.records() for batch in read_batches(data, "t", 3, check_crcs=False)]
    assert 40 <= caught.value.offset < 50


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "length does not fit"),
        (b"\x80" * 9, "length does not fit"),
        (reference.varint(-1) + b"\0" * 9, "length does not fit"),
        (reference.varint(8) + b"\0" + b"\x80" * 7, "timestamp is truncated"),
        (reference.varint(14) + b"\0" + b"\xff" * 12 + b"\1", "timestamp is truncated"),
        (reference.varint(8) + b"\0\0" + b"\xff" * 6, "offset is malformed"),
        (reference.varint(8) + b"\0\0\0" + reference.varint(5) + b"\0" * 4, "key's length"),
        (reference.varint(8) + b"\0\0\0" + reference.varint(-2) + b"\0" * 4, "key's length"),
        (reference.varint(8) + b"\0\0\0\0" + reference.varint(9) + b"\0" * 3, "value's length"),
        (reference.varint(8) + b"\0\0\0\0\0" + reference.varint(60) + b"\0\0", "headers do not fit"),
        (reference.varint(8) + b"\0\0\0\0\0" + reference.varint(-1) + b"\0\0", "headers do not fit"),
        (reference.varint(8) + b"\0\0\0\0\0" + reference.varint(1) + b"\1\0", "headers do not fit"),
        (reference.varint(8) + b"\0\0\0\0\0" + reference.varint(1) + b"\0\4", "headers do not fit"),
        (reference.varint(9) + b"\0\0\0\0\0" + reference.varint(1) + b"\0\0\0", "left over behind the record"),
        (reference.varint(8) + b"\0\0\0\0\0\0\0\0", "left over behind the record"),
    ],
)
def test_the_error_names_a_hostile_record(body: bytes, message: str) -> None:
    body += b"" if len(body) >= 7 else b"\0" * 7
    batch = read_one(reference.batch(body, [Row(0, 1, None, None)], base_offset=21))
    readers = (batch.records, batch.values, batch.columns, batch.inspect, lambda: batch.find_timestamp(1))
    for read in readers:
        with pytest.raises(CorruptRecord, match=message) as caught:
            read()
        assert (caught.value.topic, caught.value.partition) == ("t", 3)


@given(rows(gaps=True), CODECS, st.integers(1, 9), st.integers(1, 200))
def test_the_parts_of_a_batch_have_its_records(records: list[Row], codec: Compression, most: int, size: int) -> None:
    payload = compress(codec, b"".join(reference.record(row, records[0].timestamp) for row in records))
    whole = read_one(reference.batch(payload, records, attributes=int(codec), base_offset=7))
    whole.decompress()
    parts = whole.split(most, size)
    assert [record for part in parts for record in part.records()] == whole.records()
    assert all(1 <= part.count <= most for part in parts)
    assert all(part.count == 1 or sum(map(record_size, part.records()[:-1])) < size for part in parts)
    assert [part.base_offset for part in parts[1:]] == [part.next_offset for part in parts[:-1]]
    assert (parts[0].base_offset, parts[-1].next_offset) == (whole.records()[0].offset, whole.next_offset)
    assert whole.is_longer_than(most, size) or len(parts) == 1
    assert not any(part.is_longer_than(1, 1) or part.needs_decompression for part in parts)
    columns = [part.columns() for part in parts]
    assert sum(map(len, columns)) == len(whole.records())
    with pytest.raises(InvalidArgument, match="checksum"):
        parts[0].verify()


def record_size(record: Record) -> int:
    """At least what it takes, without its lengths."""
    return len(record.key or b"") + len(record.value or b"")


@pytest.mark.parametrize("magic", [0, 1])
def test_the_parts_of_an_old_message_set_have_its_records(magic: int) -> None:
    for codec in (Compression.NONE, Compression.GZIP):
        builder = BatchBuilder(magic, 1 << 20)
        for number in range(100):
            builder.append(number, None, b"value")
        whole = read_one(bytes(builder.seal(compression=codec, base_offset=5)))
        whole.decompress()
        parts = whole.split(30, 1 << 20)
        assert [part.count for part in parts] == [30, 30, 30, 10]
        assert [record for part in parts for record in part.records()] == whole.records()


def test_a_part_keeps_the_memory_that_it_looks_into() -> None:
    data = bytearray(reference.plain_batch(ROWS))
    (batch,) = read_batches(data, "t", 3)
    expected_values = batch.values()
    parts = batch.split(4, 1 << 20)
    del batch
    with pytest.raises(BufferError):
        data.extend(b"x")
    assert [value for part in parts for value in part.values()] == expected_values
    del parts
    data.extend(b"x")


def test_a_corrupt_batch_is_not_split() -> None:
    data = reference.plain_batch(ROWS)
    (batch,) = scan_batches(data[:-1] + b"\x7f")
    with pytest.raises(CorruptRecord):
        batch.split(4, 1 << 20)


def test_decompression_within_a_limit_leaves_a_larger_batch_as_it_is() -> None:
    for codec in list(Compression)[1:]:
        data = reference.batch(
            compress(codec, b"".join(reference.record(row, 0) for row in ROWS)), ROWS, attributes=int(codec)
        )
        batch = read_one(data)
        assert not batch.decompress_within(10)
        assert batch.needs_decompression
        assert batch.decompressed_size == 0
        assert batch.decompress_within(10_000)
        assert batch.decompressed_size > 10
        assert batch.count == len(batch.records()) == len(ROWS)


def test_foreign_header_names_do_not_stop_the_reader() -> None:
    body = b"\0\0\0\1\1" + reference.varint(1) + reference.sized(b"\xff\xfe") + reference.sized(b"x")
    data = reference.batch(reference.varint(len(body)) + body, [Row(0, 1, None, None)])
    assert read_one(data).records()[0].headers == (("\ufffd\ufffd", b"x"),)


def test_a_decompression_bomb_is_stopped() -> None:
    bomb = bytes(50 << 20)
    for codec in list(Compression)[1:]:
        data = reference.batch(compress(codec, bomb), ROWS, attributes=int(codec), base_offset=3)
        (batch,) = read_batches(data, "t", 3, max_decompressed=1 << 20)
        with pytest.raises(CorruptRecord, match="decompresses to more than 1048576 bytes") as caught:
            batch.records()
        assert caught.value.offset == 3


def test_a_buffer_with_holes_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="contiguous"):
        read_batches(memoryview(reference.plain_batch(ROWS))[::2], "t", 3)


def test_a_batch_keeps_its_buffer() -> None:
    data = bytearray(reference.plain_batch(ROWS))
    (batch,) = read_batches(data, "t", 3)
    with pytest.raises(BufferError):
        data.extend(b"x")
    assert batch.count == 10
    del batch
    data.extend(b"x")


def test_two_threads_that_decompress_at_once_leave_the_bytes_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first may be reading them already, without the interpreter's lock."""
    builder = BatchBuilder(2, 1 << 20)
    for number in range(100):
        builder.append(number, None, b"value")
    [batch] = read_batches(builder.seal(compression=Compression.GZIP), "t", 0)
    plain: list[bytes] = []

    def overtaken(codec: int, data: memoryview, limit: int) -> bytes:
        plain.append(decompress(codec, data, limit))
        mine = plain[-1]
        if len(plain) == 1:
            batch.decompress()  # as another thread does while this one works without the lock
        return mine

    monkeypatch.setattr(_batch, "decompress", overtaken)
    batch.decompress()
    slow, fast = plain
    plain.clear()
    assert sys.getrefcount(fast) == sys.getrefcount(slow) + 1
    assert batch.values() == [b"value"] * 100
