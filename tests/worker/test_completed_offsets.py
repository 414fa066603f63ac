"""The committed offset never passes an unfinished record, whatever the order of completion."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.worker.completed_offsets import CompletedOffsets, OffsetRange, Progress


def started(*offsets: int) -> CompletedOffsets:
    completed = CompletedOffsets()
    for offset in offsets:
        assert completed.start(offset, leader_epoch=7)
    return completed


def test_nothing_is_committable_before_the_first_record() -> None:
    assert CompletedOffsets().committable() is None


def test_the_offset_stays_at_the_first_unfinished_record() -> None:
    completed = started(10, 11, 12, 13)
    completed.complete(11)
    completed.complete(13)
    assert completed.committable() == Progress(10, -1, (OffsetRange(11, 12), OffsetRange(13, 14)))
    assert completed.in_flight == 2
    completed.complete(10)
    assert completed.committable() == Progress(12, 7, (OffsetRange(13, 14),))
    completed.complete(12)
    assert completed.committable() == Progress(14, 7, ())


def test_offsets_that_the_log_lacks_do_not_hold_the_commit_back() -> None:
    completed = started(10, 20)
    completed.complete(10)
    assert completed.committable() == Progress(20, 7, ())
    completed.complete(20)
    completed.reach(25)  # a transaction marker at the end
    assert completed.committable() == Progress(25, 7, ())


def test_what_an_earlier_owner_finished_is_left_out_and_stays_in_later_commits() -> None:
    completed = CompletedOffsets(10, [OffsetRange(12, 14), OffsetRange(17, 20)])
    assert [offset for offset in range(10, 14) if completed.start(offset)] == [10, 11]
    completed.complete(10)
    assert completed.committable() == Progress(11, -1, (OffsetRange(12, 14), OffsetRange(17, 20)))
    completed.complete(11)
    committable = completed.committable()
    assert committable is not None
    assert committable.offset == 14
    assert committable.ranges == (OffsetRange(17, 20),)
    assert [offset for offset in range(14, 22) if completed.start(offset)] == [14, 15, 16, 20, 21]


def test_ranges_of_a_log_that_was_recreated_are_forgotten() -> None:
    completed = CompletedOffsets(10, [OffsetRange(12, 14)])
    assert [offset for offset in range(15) if completed.start(offset)] == list(range(15))


def test_the_epoch_is_that_of_the_record_before_the_committed_offset() -> None:
    completed = CompletedOffsets()
    for offset, epoch in ((0, 1), (1, 1), (2, 4), (3, 4)):
        completed.start(offset, epoch)
    for offset, expected in ((0, 1), (1, 1), (2, 4), (3, 4)):
        completed.complete(offset)
        committable = completed.committable()
        assert committable is not None
        assert committable.leader_epoch == expected


@given(
    gaps=st.lists(st.integers(1, 3), min_size=1, max_size=60),
    seed=st.randoms(use_true_random=False),
    share=st.floats(0, 1),
    finished=st.lists(st.tuples(st.integers(0, 100), st.integers(1, 10)), max_size=4),
)
def test_any_order_of_completion_agrees_with_a_set_of_offsets(
    gaps: list[int], seed: object, share: float, finished: list[tuple[int, int]]
) -> None:
    ranges: list[OffsetRange] = []
    for start, length in sorted(finished):
        if start >= 1 and (not ranges or start > ranges[-1].end):
            ranges.append(OffsetRange(start, start + length))
    completed = CompletedOffsets(0, ranges)
    offsets = [sum(gaps[:n]) - gaps[0] for n in range(1, len(gaps) + 1)]
    skipped = {offset for each in ranges for offset in range(*each)}
    handled = [offset for offset in offsets if completed.start(offset)]
    assert handled == [offset for offset in offsets if offset not in skipped]
    seed.shuffle(handled)  # type: ignore[attr-defined]  # a random.Random
    done = handled[: int(share * len(handled))]
    for offset in done:
        completed.complete(offset)
    progress = completed.committable()
    assert progress is not None
    unfinished = sorted(set(handled) - set(done))
    assert progress.offset == (unfinished[0] if unfinished else offsets[-1] + 1)
    beyond = {offset for each in progress.ranges for offset in range(*each)}
    assert beyond.isdisjoint(unfinished)
    assert beyond >= {offset for offset in done if offset > progress.offset}
    assert beyond >= {offset for offset in skipped if offset > offsets[-1]}
    assert all(a.end < b.start for a, b in itertools.pairwise(progress.ranges))
    assert completed.in_flight == len(unfinished)


def test_a_record_that_never_finishes_costs_no_memory_for_those_behind_it() -> None:
    completed = started(0)
    for offset in range(1, 100_000):
        completed.start(offset, 7)
        completed.complete(offset)
    assert completed.in_flight == 1
    assert completed.committable() == Progress(0, -1, (OffsetRange(1, 100_000),))
