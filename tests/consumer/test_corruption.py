"""Where corrupt data ends, as far as it can be determined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.consumer.corruption import corrupt_record, offset_behind
from aiokwire.consumer.positions import PartitionState
from aiokwire.errors import CorruptRecord
from aiokwire.records import BatchBuilder
from aiokwire.types import TopicPartition

T0 = TopicPartition("t", 0)


def batch(base: int, count: int, magic: int = 2) -> bytearray:
    builder = BatchBuilder(magic, 1 << 20)
    for number in range(count):
        builder.append(1000 + number, None, b"value")
    return bytearray(builder.seal(base_offset=base, leader_epoch=0) if magic == 2 else builder.seal(base_offset=base))


def test_the_next_valid_batch_marks_the_end_of_the_corrupt_one() -> None:
    bad = batch(10, 3)
    bad[26] ^= 0x40  # the last offset in its header
    assert offset_behind(bytes(bad + batch(13, 2)), 10) == 13


def test_without_a_next_batch_a_plausible_header_is_trusted() -> None:
    bad = batch(10, 3)
    bad[-1] ^= 1
    assert offset_behind(bytes(bad), 11) == 13
    assert offset_behind(bytes(bad + batch(13, 2)[:40]), 10) == 13


@pytest.mark.parametrize("at", [0, 7, 24])
def test_an_implausible_header_is_not_trusted(at: int) -> None:
    bad = batch(10, 3)
    bad[at] ^= 0x7F
    assert offset_behind(bytes(bad), 10) == 11


def test_a_next_batch_before_the_position_is_not_trusted() -> None:
    bad = batch(10, 3)
    bad[-1] ^= 1
    assert offset_behind(bytes(bad + batch(4, 2)), 10) == 13


@given(data=st.binary(max_size=200), position=st.integers(0, 2**62))
def test_the_offset_after_corrupt_data_is_beyond_the_position(data: bytes, position: int) -> None:
    assert offset_behind(data, position) > position


def test_the_error_names_the_offset_and_the_offset_to_seek_to() -> None:
    cause = CorruptRecord("the checksum does not fit", topic="t", partition=0, offset=5)
    error = corrupt_record(PartitionState(T0), cause, 5, 9)
    assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 0, 5, 9)
    assert str(error).startswith("t[0] at offset 5: the checksum")
    assert str(error).count("at offset 5") == 1
    assert "seek to 9" in str(error)
