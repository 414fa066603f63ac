"""Summaries do not depend on where the parts are cut."""

from __future__ import annotations

import collections
import itertools

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.spark.audit.sketches import (
    LONG_KEY,
    PRODUCERS_SHOWN,
    STRETCHES_SHOWN,
    TIME_BUCKETS,
    Producer,
    Producers,
    Sizes,
    Stretches,
    TimeBuckets,
    Times,
    TopKeys,
    short_key,
)


def stretches(holes: list[int]) -> Stretches:
    found = Stretches()
    for hole in holes:
        found.add(hole, hole + 1)
    return found


@given(st.sets(st.integers(0, 120)), st.integers(0, 120))
def test_stretches_do_not_depend_on_where_the_parts_are_cut(holes: set[int], cut: int) -> None:
    ordered = sorted(holes)
    whole = stretches(ordered)
    parts = stretches([hole for hole in ordered if hole < cut]), stretches([hole for hole in ordered if hole >= cut])
    assert parts[0].merge(parts[1]) == whole
    assert whole.offsets == len(holes)
    assert whole.count == sum(hole - 1 not in holes for hole in holes)
    assert len(whole.shown) == min(whole.count, STRETCHES_SHOWN)
    assert {offset for begin, end in whole.shown for offset in range(begin, end)} <= holes


@given(st.lists(st.integers(0, 2**40)), st.integers(0, 20))
def test_sizes_do_not_depend_on_where_the_parts_are_cut(numbers: list[int], cut: int) -> None:
    whole = Sizes.of(numbers)
    assert Sizes.of(numbers[:cut]).merge(Sizes.of(numbers[cut:])) == whole
    assert (whole.count, whole.total) == (len(numbers), sum(numbers))
    assert sum(whole.by_bits.values()) == len(numbers)


def tally(keys: list[bytes], most: int) -> TopKeys:
    return TopKeys(most).add(collections.Counter(keys))


KEYS = st.lists(st.integers(0, 30).map(lambda number: b"%d" % number), max_size=200)


@given(KEYS, st.integers(0, 200))
def test_keys_are_counted_exactly_up_to_the_bound(keys: list[bytes], cut: int) -> None:
    whole = tally(keys[:cut], 31).merge(tally(keys[cut:], 31))
    assert whole.counts == collections.Counter(keys)
    assert whole.is_exact
    assert whole.records == len(keys)
    assert [count for _, count in whole.top(3)] == [count for _, count in collections.Counter(keys).most_common(3)]


@given(KEYS, st.integers(0, 200), st.integers(0, 200), st.integers(1, 8))
def test_above_the_bound_each_count_is_within_its_error(keys: list[bytes], one: int, two: int, most: int) -> None:
    one, two = min(one, two), max(one, two)
    found = tally(keys[:one], most).merge(tally(keys[one:two], most)).merge(tally(keys[two:], most))
    truth = collections.Counter(keys)
    assert len(found.counts) <= most
    assert found.error * (most + 1) <= len(keys)
    for key in truth:
        assert truth[key] - found.error <= found.counts.get(key, 0) <= truth[key]


def test_long_keys_are_distinguished_by_a_digest() -> None:
    one, other = b"a" * (LONG_KEY + 1), b"a" * LONG_KEY + b"b"
    assert short_key(one) != short_key(other)
    assert len(short_key(one)) <= LONG_KEY
    assert short_key(b"k") == b"k"


def times(numbers: list[int]) -> Times:
    found = Times()
    for number in numbers:
        one = Times(1, 0, number, number, number, number, buckets=TimeBuckets.of({number: 1}))
        found = found.merge(Times(without=1) if number < 0 else one)
    return found


@given(st.lists(st.integers(-1, 2000)), st.integers(0, 50))
def test_times_do_not_depend_on_where_the_parts_are_cut(numbers: list[int], cut: int) -> None:
    whole = times(numbers)
    assert times(numbers[:cut]).merge(times(numbers[cut:])) == whole
    known = [number for number in numbers if number >= 0]
    assert whole.without == len(numbers) - len(known)
    assert whole.steps_back == sum(later < sooner for sooner, later in itertools.pairwise(known))
    assert whole.latest_by == max((max(known[: at + 1]) - known[at] for at in range(len(known))), default=0)
    assert sum(count for _, count in whole.buckets) == len(known)


@given(st.sets(st.integers(0, 10**6), max_size=TIME_BUCKETS * 2), st.integers(0, 10**6))
def test_time_buckets_are_few_and_as_narrow_as_possible(numbers: set[int], cut: int) -> None:
    whole = TimeBuckets.of(dict.fromkeys(numbers, 1))
    parts = [
        TimeBuckets.of(dict.fromkeys(part, 1))
        for part in ({n for n in numbers if n < cut}, {n for n in numbers if n >= cut})
    ]
    assert parts[0].merge(parts[1]) == whole
    assert len(whole.counts) <= TIME_BUCKETS
    assert whole.width == 1 or len({number // (whole.width // 2) for number in numbers}) > TIME_BUCKETS


@given(st.lists(st.integers(0, 2 * PRODUCERS_SHOWN), max_size=3 * PRODUCERS_SHOWN), st.integers(0, 600))
def test_producers_do_not_depend_on_where_the_parts_are_cut(ids: list[int], cut: int) -> None:
    def tally(places: range) -> Producers:
        found = Producers()
        for offset in places:
            found.add(ids[offset], Producer(offset, offset, 0, 0, 1, 1))
        return found

    middle = min(cut, len(ids))
    whole = tally(range(len(ids)))
    assert tally(range(middle)).merge(tally(range(middle, len(ids)))) == whole
    assert sorted(whole.by_id) == sorted(set(ids))[:PRODUCERS_SHOWN]
    assert whole.more == (len(set(ids)) > PRODUCERS_SHOWN)
    for producer_id, seen in whole.by_id.items():
        assert seen.records == ids.count(producer_id)
