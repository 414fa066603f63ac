"""What is finished beyond the committed offset survives a restart, within the broker's limit."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.worker.completed_offsets import OffsetRange
from aiokwire.worker.offset_metadata import MAX_LENGTH, PREFIX, decode_ranges, encode_ranges


def ranges_of(offset: int, pairs: list[tuple[int, int]]) -> list[OffsetRange]:
    found = []
    for unfinished, finished in pairs:
        found.append(OffsetRange(offset + unfinished, offset + unfinished + finished))
        offset = found[-1].end
    return found


pairs = st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), max_size=300)


@given(offset=st.integers(0, 2**40), pairs=pairs)
def test_ranges_that_fit_are_restored(offset: int, pairs: list[tuple[int, int]]) -> None:
    ranges = ranges_of(offset, pairs)
    text = encode_ranges(offset, ranges)
    assert len(text) <= MAX_LENGTH
    assert text.isascii()
    assert decode_ranges(offset, text) == ranges


@given(offset=st.integers(0, 2**40), pairs=pairs, limit=st.integers(0, 200))
def test_the_lowest_ranges_are_kept_when_not_all_fit(offset: int, pairs: list[tuple[int, int]], limit: int) -> None:
    ranges = ranges_of(offset, pairs)
    text = encode_ranges(offset, ranges, limit)
    assert len(text) <= limit
    kept = decode_ranges(offset, text)
    assert kept[:-1] == ranges[: max(0, len(kept) - 1)]
    if kept:
        last = ranges[len(kept) - 1]
        assert kept[-1].start == last.start
        assert kept[-1].end <= last.end


def test_a_window_of_ten_thousand_records_always_fits() -> None:
    ranges = [OffsetRange(offset, offset + 1) for offset in range(1, 20_000, 2)]
    assert decode_ranges(0, encode_ranges(0, ranges)) == ranges


def test_few_ranges_far_apart_take_few_characters() -> None:
    ranges = [OffsetRange(100_000, 200_000), OffsetRange(900_000, 900_001)]
    text = encode_ranges(5, ranges)
    assert len(text) < len(PREFIX) + 20
    assert decode_ranges(5, text) == ranges


@pytest.mark.parametrize(
    "metadata",
    ["", "consumer-1", '{"state": 1}', "aiokwire2:AAAA", PREFIX, PREFIX + "=", PREFIX + "AAAAAAA", PREFIX + "ÿ" * 8],
)
def test_foreign_metadata_is_ignored(metadata: str) -> None:
    assert decode_ranges(7, metadata) == []


@given(st.text(alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=", max_size=200))
def test_corrupt_metadata_is_either_ignored_or_yields_valid_ranges(text: str) -> None:
    found = decode_ranges(100, PREFIX + text)
    assert all(each.start < each.end and each.start >= 100 for each in found)
    assert all(a.end < b.start for a, b in itertools.pairwise(found))
