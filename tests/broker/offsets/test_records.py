"""The format of `__consumer_offsets`: round trips, bytes written by hand, and corrupt ones."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.offsets import CommittedOffset
from aiokwire.broker.offsets.records import OffsetKey, decode_key, decode_value, encode_key, encode_value
from aiokwire.errors import CorruptRecord
from aiokwire.types import TopicPartition

KEY = OffsetKey("g", TopicPartition("t", 3))


@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1))
def test_an_offset_comes_back_as_it_was(group: str, metadata: str, partition: int, offset: int) -> None:
    key = OffsetKey(group, TopicPartition("größe", partition))
    committed = CommittedOffset(offset, 4, metadata, 1_700_000_000_000)
    assert decode_key(encode_key(*key)) == key
    assert decode_value(key, encode_value(committed)) == committed


def test_the_bytes_are_those_of_kafka() -> None:
    assert encode_key(*KEY) == struct.pack(">hh1sh1si", 1, 1, b"g", 1, b"t", 3)
    assert encode_value(CommittedOffset(7, -1, "m", 9)) == struct.pack(">hqih1sq", 3, 7, -1, 1, b"m", 9)


@pytest.mark.parametrize(
    "value",
    [
        struct.pack(">hqh1sq", 0, 7, 1, b"m", 9),
        struct.pack(">hqh1sqq", 1, 7, 1, b"m", 9, 100),
        struct.pack(">hqh1sq", 2, 7, 1, b"m", 9),
        struct.pack(">hqib1sq", 4, 7, -1, 2, b"m", 9) + b"\x01\x00\x10" + bytes(16),
    ],
)
def test_every_version_that_kafka_wrote_is_read(value: bytes) -> None:
    assert decode_value(KEY, value) == CommittedOffset(7, -1, "m", 9)


def test_records_of_group_members_are_passed_over() -> None:
    assert decode_key(struct.pack(">hh1s", 2, 1, b"g")) is None


@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_reported_as_corrupt(value: bytes) -> None:
    with contextlib.suppress(CorruptRecord):
        assert decode_value(KEY, value).offset == int.from_bytes(value[2:10], "big", signed=True)
