"""The indexes: their lookups, and the bytes of their files."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.log.index import AbortedTransaction, OffsetIndex, TimeIndex, TransactionIndex


def test_an_offset_is_found_at_the_last_entry_that_is_not_above_it() -> None:
    index = OffsetIndex(100)
    index.append(149, 1000)
    index.append(199, 2000)
    assert [index.floor(offset) for offset in (100, 148, 149, 198, 199, 5000)] == [0, 0, 1000, 1000, 2000, 2000]
    assert [index.floor_position(position) for position in (0, 999, 1000, 2500)] == [0, 0, 1000, 2000]
    assert [index.offset_at(position) for position in (0, 1000, 1001, 2001)] == [149, 149, 199, None]


def test_entries_are_big_endian_pairs_relative_to_the_base() -> None:
    storage = MemoryStorage()
    index = OffsetIndex(100)
    index.append(149, 1000)
    index.save(storage, "a.index")
    assert storage.read("a.index") == struct.pack(">ii", 49, 1000)
    index.append(199, 2000)
    index.save(storage, "a.index")
    assert storage.read("a.index") == struct.pack(">iiii", 49, 1000, 99, 2000)
    index.truncate_from(2000)
    index.save(storage, "a.index")
    assert storage.read("a.index") == struct.pack(">ii", 49, 1000)


def test_a_preallocated_index_ends_at_its_zeros_and_is_cut_to_size() -> None:
    storage = MemoryStorage()
    storage.write("a.index", struct.pack(">iiii", 49, 1000, 99, 2000) + bytes(800))
    index = OffsetIndex(100, storage.read("a.index"))
    assert len(index) == 2
    index.save(storage, "a.index")
    assert storage.size("a.index") == 16


def test_a_new_index_leaves_a_file_even_when_it_is_empty() -> None:
    storage = MemoryStorage()
    OffsetIndex(0).save(storage, "a.index")
    assert storage.size("a.index") == 0


def test_the_time_index_only_rises() -> None:
    storage = MemoryStorage()
    index = TimeIndex(100)
    for timestamp, offset in [(-1, 100), (50, 110), (50, 120), (40, 130), (60, 140)]:
        index.append(timestamp, offset)
    assert index.last == (60, 140)
    assert [index.floor(timestamp) for timestamp in (0, 50, 51, 60, 61)] == [100, 100, 110, 110, 140]
    index.save(storage, "a.timeindex")
    assert storage.read("a.timeindex") == struct.pack(">qiqi", 50, 10, 60, 40)
    index.truncate_from(140)
    assert index.last == (50, 110)


def test_aborted_transactions_are_34_bytes_each() -> None:
    storage = MemoryStorage()
    index = TransactionIndex()
    entry = AbortedTransaction(producer_id=7, first_offset=50, last_offset=100, last_stable_offset=101)
    index.append(entry)
    index.save(storage, "a.txnindex")
    assert storage.read("a.txnindex") == struct.pack(">hqqqq", 0, 7, 50, 100, 101)
    assert TransactionIndex(storage.read("a.txnindex")).entries == [entry]
    index.truncate_from(100)
    assert index.entries == []


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 100_000)), max_size=50),
    st.integers(0, 60_000),
)
def test_lookups_agree_with_a_linear_search(steps: list[tuple[int, int]], target: int) -> None:
    index, entries = OffsetIndex(0), [(0, 0)]
    for offset_step, position_step in steps:
        entries.append((entries[-1][0] + offset_step, entries[-1][1] + position_step))
        index.append(*entries[-1])
    assert index.floor(target) == max(position for offset, position in entries if offset <= target)
    saved = MemoryStorage()
    index.save(saved, "i")
    loaded = OffsetIndex(0, saved.read("i"))
    assert loaded.floor(target) == index.floor(target)
