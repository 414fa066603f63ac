"""Patching sealed batches: only the named fields change, and the checksum fits again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.errors import CorruptRecord, InvalidArgument
from aiokwire.records import assign_offsets, read_batches, set_log_append_time, set_producer_state
from tests.records import reference
from tests.records.reference import Row
from tests.records.strategies import rows

ROWS = [Row(index, 1000 + index, b"k", b"v") for index in range(4)]


@given(st.lists(rows(), min_size=1, max_size=3), st.integers(0, 1 << 60), st.integers(-1, 1 << 30))
def test_offsets_and_epoch_are_assigned_one_batch_after_the_other(
    batches: list[list[Row]], base_offset: int, leader_epoch: int
) -> None:
    data = bytearray(b"".join(map(reference.plain_batch, batches)))
    expected = b""
    behind = base_offset
    for content in batches:
        expected += reference.plain_batch(content, base_offset=behind, leader_epoch=leader_epoch)
        behind += content[-1].delta + 1
    assert assign_offsets(data, base_offset, leader_epoch) == behind
    assert bytes(data) == expected


def test_log_append_time_is_set_and_sealed() -> None:
    data = bytearray(reference.plain_batch(ROWS) + reference.plain_batch(ROWS))
    set_log_append_time(memoryview(data), 5555)
    assert bytes(data) == reference.plain_batch(ROWS, attributes=8, max_timestamp=5555) * 2
    assert {record.timestamp for batch in read_batches(data, "t", 0) for record in batch.records()} == {5555}


def test_a_producers_new_state_is_set_and_sealed() -> None:
    data = bytearray(reference.plain_batch(ROWS))
    set_producer_state(data, 77, 2, 9)
    payload = b"".join(reference.record(row, 1000) for row in ROWS)
    assert bytes(data) == reference.batch(payload, ROWS, producer=(77, 2, 9))
    with pytest.raises(InvalidArgument, match="must contain one batch to set its producer state, not 2"):
        set_producer_state(data + data, 1, 1, 1)


@pytest.mark.parametrize("patch", [lambda data: assign_offsets(data, 0, 0), lambda data: set_log_append_time(data, 0)])
def test_cut_batches_and_old_formats_are_refused_unchanged(patch: Callable[[bytearray], object]) -> None:
    whole = reference.plain_batch(ROWS)
    for data, error in (
        (bytearray(whole + whole[:-1]), CorruptRecord),
        (bytearray(), CorruptRecord),
        (bytearray(whole + reference.message_set(1, ROWS)), InvalidArgument),
    ):
        before = bytes(data)
        with pytest.raises(error):
            patch(data)
        assert bytes(data) == before
