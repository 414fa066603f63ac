"""Conversion between formats: what both formats can hold survives, offsets are kept or assigned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import CorruptRecord, InvalidArgument
from aiokwire.records import Record, compress, convert, read_batches
from aiokwire.types import Compression, TimestampType
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import CODECS, codecs_of, rows

ROWS = [Row(index, 1000 + index, b"k", b"v%d" % index, (("h", b"x"),)) for index in range(4)]
MAGICS = st.sampled_from([0, 1, 2])


def read_all(data: bytes) -> list[Record]:
    return [record for batch in read_batches(data, "t", 0) for record in batch.records()]


def brief(records: list[Record], *, timestamps: bool) -> list[tuple[object, ...]]:
    return [(one.offset, one.timestamp if timestamps else -1, one.key, one.value) for one in records]


def batch_of(content: list[Row], codec: int, base_offset: int = 0) -> bytes:
    payload = compress(codec, b"".join(reference.record(row, content[0].timestamp) for row in content))
    return reference.batch(payload, content, attributes=int(codec), base_offset=base_offset, leader_epoch=3)


@given(rows(gaps=True), CODECS, st.sampled_from([0, 1]), st.integers(0, 1 << 60))
def test_newer_batches_go_down_with_their_offsets(
    content: list[Row], codec: Compression, magic: int, base_offset: int
) -> None:
    data = batch_of(content, codec, base_offset)
    down = convert(data, magic)
    (batch,) = read_batches(down, "t", 0)
    assert batch.magic == magic
    assert batch.compression is (Compression.GZIP if codec is Compression.ZSTD else codec)
    assert brief(batch.records(), timestamps=False) == brief(read_all(data), timestamps=False)
    if magic:
        assert brief(batch.records(), timestamps=True) == brief(read_all(data), timestamps=True)


@given(rows(headers=False), st.sampled_from([0, 1]), st.sampled_from(codecs_of(1)), st.integers(0, 1 << 60))
def test_what_an_old_producer_sends_gets_its_offsets(
    content: list[Row], magic: int, codec: Compression, base_offset: int
) -> None:
    old = reference.message_set(magic, content)
    if codec:
        old = reference.message(magic, content[-1].delta, 1, None, compress(codec, old, magic=magic), int(codec))
    up = convert(old, 2, base_offset=base_offset, leader_epoch=6)
    (batch,) = read_batches(up, "t", 0)
    assert (batch.magic, batch.compression, batch.leader_epoch, batch.base_offset) == (2, codec, 6, base_offset)
    timestamps = [row.timestamp if magic else -1 for row in content]
    assert [(one.offset, one.timestamp) for one in batch.records()] == [
        (base_offset + index, timestamp) for index, timestamp in enumerate(timestamps)
    ]
    assert batch.values() == [row.value for row in content]


def test_an_old_producer_may_send_any_offsets() -> None:
    old = b"".join(reference.message(1, 0, 5, None, b"v%d" % index) for index in range(3))
    assert [one.offset for one in read_all(convert(old, 2, base_offset=9))] == [9, 10, 11]
    with pytest.raises(CorruptRecord, match="offsets are not ascending"):
        convert(old, 2)


def test_the_same_format_is_kept_byte_for_byte() -> None:
    data = batch_of(ROWS, Compression.ZSTD, 9)
    assert convert(data, 2) == data


def test_log_append_time_and_producer_state_are_kept_where_they_can_be() -> None:
    payload = b"".join(reference.record(row, 1000) for row in ROWS)
    data = reference.batch(payload, ROWS, attributes=8 | 16, max_timestamp=77, producer=(5, 1, 9))
    old = convert(data, 1)
    assert {(one.timestamp, one.timestamp_type) for one in read_all(old)} == {(77, TimestampType.LOG_APPEND_TIME)}
    (moved,) = read_batches(convert(data, 2, base_offset=50), "t", 0)
    assert (moved.producer_id, moved.producer_epoch, moved.base_sequence, moved.is_transactional) == (5, 1, 9, True)
    assert moved.records()[0] == Record(
        "t", 0, 50, 77, b"k", b"v0", [("h", b"x")], timestamp_type=TimestampType.LOG_APPEND_TIME
    )


def test_control_batches_are_left_out_of_old_formats() -> None:
    marker = reference.plain_batch([Row(0, 5, b"\0\0\0\1", b"")], attributes=48, base_offset=4)
    data = batch_of(ROWS, 0) + marker + batch_of(ROWS, 0, 5)
    assert [one.offset for one in read_all(convert(data, 1))] == [0, 1, 2, 3, 5, 6, 7, 8]
    assert convert(marker, 0) == b""


def test_corrupt_or_truncated_input_raises() -> None:
    data = bytearray(batch_of(ROWS, 0) * 2)
    with pytest.raises(CorruptRecord, match="corrupt or truncated"):
        convert(data[:-1], 1)
    data[-1] ^= 1
    with pytest.raises(CorruptRecord, match="corrupt or truncated"):
        convert(data, 1)
    with pytest.raises(InvalidArgument, match="message format 3 is unknown"):
        convert(b"", 3)


@given(rows(headers=False), MAGICS, MAGICS)
def test_there_and_back_again(content: list[Row], first: int, second: int) -> None:
    data = batch_of(content, 0, 10)
    back = convert(convert(convert(data, first), second), 2)
    timestamps = first > 0 and second > 0
    assert brief(read_all(back), timestamps=timestamps) == brief(read_all(data), timestamps=timestamps)
