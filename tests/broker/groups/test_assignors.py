"""The broker's assignors assign every partition to a subscriber, evenly, and move few."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.groups.assignors import ASSIGNORS, Subscriber, assign_range, assign_uniform
from aiokwire.broker.groups.consumer_group import NOTHING, Part, Parts, by_topic

T, U = b"t" * 16, b"u" * 16

topic_sets = st.frozensets(st.sampled_from([T, U, b"v" * 16]))
memberships = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), topic_sets, min_size=1, max_size=8)
sizes = st.fixed_dictionaries({T: st.integers(0, 12), U: st.integers(0, 5), b"v" * 16: st.integers(0, 3)})


def members(**topics: frozenset[bytes]) -> list[Subscriber]:
    return [Subscriber(name, None, wanted) for name, wanted in topics.items()]


def wanted_only(names: Mapping[str, frozenset[bytes]], counts: Mapping[bytes, int]) -> dict[bytes, int]:
    return {topic: count for topic, count in counts.items() if any(topic in one for one in names.values())}


@pytest.mark.parametrize("name", ASSIGNORS)
@given(names=memberships, counts=sizes)
def test_each_partition_goes_to_one_subscriber(
    name: str, names: dict[str, frozenset[bytes]], counts: dict[bytes, int]
) -> None:
    topics = wanted_only(names, counts)
    assigned = ASSIGNORS[name](members(**names), topics, {})
    assert assigned.keys() == names.keys()
    given_out = [part for parts in assigned.values() for part in parts]
    assert sorted(given_out) == [Part(topic, index) for topic in sorted(topics) for index in range(topics[topic])]
    assert all(part.topic_id in names[member_id] for member_id, parts in assigned.items() for part in parts)


@given(names=memberships, counts=sizes, others=memberships, other_counts=sizes)
def test_uniform_is_even_and_keeps_what_it_can(
    names: dict[str, frozenset[bytes]],
    counts: dict[bytes, int],
    others: dict[str, frozenset[bytes]],
    other_counts: dict[bytes, int],
) -> None:
    before = assign_uniform(members(**others), wanted_only(others, other_counts), {})
    topics = wanted_only(names, counts)
    after = assign_uniform(members(**names), topics, before)
    # no member has two more than another that could have one of them
    for giver, parts in after.items():
        for part in parts:
            for taker, subscription in names.items():
                if part.topic_id in subscription:
                    assert len(after[taker]) + 1 >= len(parts), (giver, taker)
    assert assign_uniform(members(**names), topics, after) == after, "nothing changed, so nothing moves"


def sticky(members_count: int, lost: int) -> tuple[dict[str, Parts], dict[str, Parts]]:
    everything = frozenset({T})
    row = [Subscriber(f"m{number}", None, everything) for number in range(members_count)]
    before = assign_uniform(row, {T: 24}, {})
    return before, assign_uniform(row[lost:], {T: 24}, before)


def test_uniform_moves_only_lost_partitions() -> None:
    before, after = sticky(6, 1)
    for member_id, parts in after.items():
        assert before[member_id] <= parts
    assert {len(parts) for parts in after.values()} == {4, 5}


def test_uniform_takes_from_every_member_for_a_new_one() -> None:
    everything = frozenset({T})
    row = [Subscriber(f"m{number}", None, everything) for number in range(3)]
    before = assign_uniform(row[:2], {T: 6}, {})
    after = assign_uniform(row, {T: 6}, before)
    assert {len(parts) for parts in after.values()} == {2}
    assert all(after[member_id] <= before[member_id] for member_id in ("m0", "m1"))


def test_range_gives_neighbours_and_the_same_numbers_of_topics_that_are_alike() -> None:
    both = frozenset({T, U})
    assigned = assign_range(members(a=both, b=both, c=both), {T: 4, U: 4}, {})
    assert [by_topic(assigned[name]) for name in "abc"] == [
        {T: [0, 1], U: [0, 1]},
        {T: [2], U: [2]},
        {T: [3], U: [3]},
    ]


def test_range_keeps_the_place_of_a_static_member_that_comes_back_under_another_id() -> None:
    only = frozenset({T})
    before = assign_range([Subscriber("x", "i1", only), Subscriber("y", "i2", only)], {T: 2}, {})
    after = assign_range([Subscriber("z", "i1", only), Subscriber("y", "i2", only)], {T: 2}, {})
    assert before["x"] == after["z"] != NOTHING
    assert before["y"] == after["y"]
