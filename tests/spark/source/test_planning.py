from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.spark.source.planning import (
    MANY_TASKS,
    SMALL,
    Range,
    admit,
    admit_bytes,
    cut,
    lag,
    must_wait,
    ranges_between,
    split,
    without_lost,
)
from aiokwire.types import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_empty_ranges_are_not_read() -> None:
    assert ranges_between({A: 5, B: 7, C: 9}, {C: 12, A: 5, B: 8}) == [Range("t", 1, 7, 8), Range("t", 2, 9, 12)]


def test_a_partition_without_a_start_is_not_read() -> None:
    assert ranges_between({}, {A: 5}) == []


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 10**7)), max_size=30),
    st.none() | st.integers(1, 200),
    st.none() | st.integers(50_000, 10**7),
    st.none() | st.integers(10**6, 10**9),
)
def test_splitting_neither_loses_nor_duplicates_offsets(
    given_: list[tuple[int, int]], min_tasks: int | None, max_records: int | None, max_bytes: int | None
) -> None:
    ranges = [Range("t", number, start, start + size) for number, (start, size) in enumerate(given_)]
    sizes = {whole.tp: 100.0 for whole in ranges}
    tasks = split(ranges, min_tasks=min_tasks, max_records=max_records, max_bytes=max_bytes, bytes_per_offset=sizes)
    pieces = sorted(itertools.chain.from_iterable(tasks))
    joined: list[Range] = []
    for piece in pieces:
        assert piece.size > 0
        assert max_records is None or piece.size <= max_records
        assert max_bytes is None or piece.size <= max(1, max_bytes // 100)
        if joined and joined[-1].tp == piece.tp and joined[-1].end == piece.start:
            joined[-1] = joined[-1]._replace(end=piece.end)
        else:
            joined.append(piece)
    assert joined == ranges
    if min_tasks is not None and ranges:
        assert len(tasks) >= min(min_tasks, sum(whole.size for whole in ranges))


def test_each_partition_has_a_task_by_itself() -> None:
    ranges = [Range("t", 0, 0, 10), Range("t", 1, 0, 10**7)]
    assert split(ranges) == [(ranges[0],), (ranges[1],)]


def test_min_partitions_splits_large_ranges() -> None:
    tasks = split([Range("t", 0, 0, 10), Range("t", 1, 0, 1000)], min_tasks=5)
    assert len(tasks) == 5
    assert [piece.size for (piece,) in tasks] == [10, 250, 250, 250, 250]


def test_many_small_partitions_share_tasks() -> None:
    ranges = [Range("t", number, 0, 100) for number in range(300)] + [Range("u", 0, 0, 5 * SMALL)]
    tasks = split(ranges)
    assert len(tasks) == MANY_TASKS
    assert (ranges[-1],) in tasks, "a large range has its own task"
    assert all(len(task) == 20 for task in tasks if task != (ranges[-1],))


def test_a_range_is_cut_into_no_more_pieces_than_offsets() -> None:
    assert cut(Range("t", 0, 5, 7), 9) == [Range("t", 0, 5, 6), Range("t", 0, 6, 7)]


def test_a_limit_is_shared_by_lag_and_starves_no_partition() -> None:
    start = {A: 0, B: 0, C: 100}
    assert admit(start, {A: 900, B: 1, C: 199}, 100) == {A: 90, B: 1, C: 109}
    assert admit(start, {A: 5, B: 0, C: 100}, 100) == {A: 5, B: 0, C: 100}, "all fits"


def test_a_limit_of_bytes_uses_the_bytes_per_offset() -> None:
    ends = admit_bytes({A: 0, B: 0}, {A: 1000, B: 1000}, 55_000, {A: 10, B: 100})
    assert ends == {A: 500, B: 500}


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=20), st.integers(1, 10**6)
)
def test_admission_reaches_the_end_and_never_exceeds_it(lags: list[tuple[int, int]], most: int) -> None:
    start = {TopicPartition("t", number): begin for number, (begin, _) in enumerate(lags)}
    available = {TopicPartition("t", number): begin + size for number, (begin, size) in enumerate(lags)}
    end = admit(start, available, most)
    assert all(start[tp] <= end[tp] <= available[tp] for tp in available)
    assert end != start or start == available
    assert lag(start, end) <= most + len(lags)


@pytest.mark.parametrize(
    ("offsets", "waited", "waits"), [(99, 0.0, True), (100, 0.0, False), (99, 900.0, False), (0, 899.0, True)]
)
def test_a_microbatch_waits_for_its_minimum_up_to_the_delay(offsets: int, waited: float, waits: bool) -> None:
    assert must_wait(offsets=offsets, least=100, waited=waited, max_delay=900) is waits
    assert not must_wait(offsets=offsets, least=None, waited=waited, max_delay=900)


def test_lost_offsets_are_reported_by_partition() -> None:
    start = {A: 5, B: 50, C: 10}
    found, losses = without_lost(start, {A: 8, B: 0}, {A: 20, B: 30})
    assert found == {A: 8, B: 0}
    assert [str(loss) for loss in losses] == [
        "t[0]: offsets 5 to 7 cannot be read: the log begins at 8",
        "t[1]: offset 50 cannot be read: the log ends at 30: it was recreated or truncated",
        "t[2]: offset 10 cannot be read: the partition was deleted",
    ]
    assert without_lost({A: 8, B: 30}, {A: 8, B: 0}, {A: 20, B: 30}) == ({A: 8, B: 30}, [])
