"""The broker's checks of a batch, compared with the decoded records."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import CorruptRecord
from aiokwire.records import (
    RecordBatch,
    compress,
    crc32c,
    find_offset_for_timestamp,
    max_timestamp_record,
    scan_batches,
    take_sound,
    validate_records,
)
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import CODECS, TIMESTAMPS, rows


@given(rows(gaps=True), CODECS, TIMESTAMPS)
def test_answers_are_those_of_the_records(records: list[Row], codec: int, asked: int) -> None:
    payload = compress(codec, b"".join(reference.record(row, records[0].timestamp) for row in records))
    (batch,) = scan_batches(reference.batch(payload, records, attributes=int(codec), base_offset=70))
    check = validate_records(batch)
    assert check.records == len(records)
    assert check.contiguous == (records[-1].delta == len(records) - 1)
    assert check.keyless == [index for index, row in enumerate(records) if row.key is None]
    stamped = [row for row in records if row.timestamp > -1]
    newest = max(stamped, key=lambda row: row.timestamp, default=None)
    wanted = (-1, -1) if newest is None else (newest.timestamp, 70 + newest.delta)
    assert check[2:4] == wanted == max_timestamp_record(batch)
    found = next(((70 + row.delta, row.timestamp) for row in records if row.timestamp >= asked), None)
    assert find_offset_for_timestamp(batch, asked) == found


def test_a_batch_whose_last_offset_lies_behind_its_records_is_not_contiguous() -> None:
    content = [Row(0, 5, b"k", b"v"), Row(1, 5, b"k", b"v")]
    payload = b"".join(reference.record(row, 5) for row in content)
    (batch,) = scan_batches(reference.batch(payload, [*content[:1], Row(9, 5, b"k", b"v")]))
    assert not validate_records(batch).contiguous


def test_message_sets_are_checked_too() -> None:
    content = [Row(0, 5, b"k", b"v"), Row(1, 9, None, b"v"), Row(2, 7, b"k", b"v")]
    (batch,) = scan_batches(reference.message_set(1, content, 30))
    assert validate_records(batch) == (3, True, 9, 31, [1], [])
    assert find_offset_for_timestamp(batch, 6) == (31, 9)
    assert find_offset_for_timestamp(batch, 10) is None


def taken(
    data: bytes, earliest: int = 0, latest: int = 1 << 62, *, needs_keys: bool = False, has_own_time: bool = False
) -> RecordBatch | None:
    return take_sound(data, len(data), 1000, earliest, latest, needs_keys=needs_keys, has_own_time=has_own_time)


def sealed(data: bytearray) -> bytes:
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


@given(rows(gaps=True), TIMESTAMPS, TIMESTAMPS, st.booleans(), st.booleans())
def test_a_batch_is_accepted_when_its_records_are_valid(
    records: list[Row], earliest: int, latest: int, needs_keys: bool, has_own_time: bool
) -> None:
    data = reference.plain_batch(records, base_offset=70)
    (batch,) = scan_batches(data)
    stamps = [row.timestamp for row in records]
    wanted = records[-1].delta == len(records) - 1
    if needs_keys:
        wanted = wanted and all(row.key is not None for row in records)
    if not has_own_time:
        wanted = wanted and max(-1, *stamps) == batch.max_timestamp <= latest
        wanted = wanted and not any(0 <= stamp < earliest for stamp in stamps)
    found = taken(data, earliest, latest, needs_keys=needs_keys, has_own_time=has_own_time)
    assert (found is not None) == wanted
    if found is not None:
        assert (found.base_offset, found.last_offset, found.count) == (70, 69 + len(records), len(records))
        assert found.max_timestamp == batch.max_timestamp
        assert found.data.tobytes() == data
        assert found.records() == batch.records()


WIDE = [
    Row(index, 5 + index * step, key, value, (("h", b"x" * size),) if size % 3 else ())
    for index, (step, size) in enumerate([(1, 0), (200, 63), (1 << 20, 64), (0, 8191), (1 << 40, 8192), (3, 1 << 20)])
    for key in [b"k" * size]
    for value in [b"v" * size]
]


def test_numbers_of_every_width_are_walked() -> None:
    many = [Row(index, 5, None, b"v") for index in range(9000)]
    for records in (WIDE, many):
        data = reference.plain_batch(records)
        batch = take_sound(data, len(data), 9000, 0, 1 << 62)
        assert batch is not None
        newest = max(row.timestamp for row in records)
        assert validate_records(batch)[:3] == (len(records), True, newest)


@given(rows(), st.data())
def test_a_batch_with_a_corrupt_record_is_rejected(records: list[Row], draw: st.DataObject) -> None:
    data = bytearray(reference.plain_batch(records))
    at = draw.draw(st.integers(61, len(data) - 1))
    data[at] = draw.draw(st.integers(0, 255))
    if draw.draw(st.booleans()):
        del data[-1:]
        struct.pack_into(">i", data, 8, len(data) - 12)
    batch = taken(sealed(data))
    (scanned,) = scan_batches(data)
    try:
        decoded = scanned.records()
        is_sound = [record.offset for record in decoded] == list(range(len(records)))
        newest = max(-1, *(record.timestamp for record in decoded))
    except CorruptRecord:
        is_sound, newest = False, -1
    assert (batch is not None) == (is_sound and newest == scanned.max_timestamp <= 1 << 62)


def test_a_batch_is_not_accepted_for_its_header_alone() -> None:
    good = reference.plain_batch([Row(0, 5, b"k", b"v"), Row(1, 6, b"k", b"v")])
    assert taken(good) is not None
    assert taken(good + b"\0") is None
    assert taken(good[:-1]) is None
    assert taken(good[:60]) is None
    assert taken(bytes(200)) is None
    assert taken(good[:-1] + b"\1") is None  # the checksum
    assert take_sound(good, len(good) - 1, 1000, 0, 1 << 62) is None
    assert take_sound(good, len(good), 1, 0, 1 << 62) is None
    for place, layout, value in (
        (0, ">q", -1),  # base offset
        (0, ">q", (1 << 63) - 1),
        (16, ">b", 3),  # format
        (21, ">h", 1),  # compressed
        (21, ">h", 8),  # log append time
        (21, ">h", 16),  # transactional, without a producer
        (21, ">h", 32),  # control
        (23, ">i", 2),  # last offset
        (35, ">q", 7),  # greatest timestamp
        (43, ">q", 1),  # a producer without a sequence number
        (57, ">i", 3),  # count
        (57, ">i", 0),
        (57, ">i", -1),
        (57, ">i", 2**31 - 1),
    ):
        data = bytearray(good)
        struct.pack_into(layout, data, place, value)
        assert taken(sealed(data)) is None, (place, value)
