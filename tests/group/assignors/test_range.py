"""Range: consecutive partitions, equal numbers of similar topics together, racks as far as
possible."""

from __future__ import annotations

from hypothesis import given

from aiokwire.group.assignors import RangeAssignor

from .groups import Group, Topics, check, groups, member, topic, topics, tps


def test_ranges_are_consecutive_and_the_first_members_get_the_remainder() -> None:
    members = member("two", "t", "u") | member("one", "t", "u") | member("three", "t")
    given_out = RangeAssignor().assign(members, topic("t", 7) | topic("u", 3))
    assert given_out == {"one": tps("t0 t1 t2 u0 u1"), "three": tps("t3 t4"), "two": tps("t5 t6 u2")}


def test_static_members_keep_their_place_for_any_member_ids() -> None:
    for first, second in (("x", "y"), ("y", "x")):
        members = member(first, "t", static="1") | member(second, "t", static="2") | member("a", "t")
        given_out = RangeAssignor().assign(members, topic("t", 3))
        assert given_out == {first: tps("t0"), second: tps("t1"), "a": tps("t2")}


def test_partitions_are_read_from_their_readers_rack() -> None:
    members = member("1", "t", rack="a") | member("2", "t", rack="b") | member("3", "t", rack="c")
    given_out = RangeAssignor().assign(members, topic("t", 6, "c", "b", "a"))
    assert given_out == {"1": tps("t2 t5"), "2": tps("t1 t4"), "3": tps("t0 t3")}


def test_equal_numbers_of_similar_topics_stay_together_before_racks() -> None:
    members = member("1", "t", "u", rack="a") | member("2", "t", "u", rack="b")
    given_out = RangeAssignor().assign(members, topic("t", 2, "b", "a") | topic("u", 2, "b", "a"))
    assert given_out == {"1": tps("t1 u1"), "2": tps("t0 u0")}
    crossed = RangeAssignor().assign(members, topic("t", 2, "b", "a") | topic("u", 2, "a", "b"))
    assert crossed == {"1": tps("t0 u0"), "2": tps("t1 u1")}


@given(groups(), topics())
def test_all_partitions_are_assigned_and_shares_of_a_topic_differ_by_at_most_one(
    members: Group, partitions: Topics
) -> None:
    given_out = RangeAssignor().assign(members, partitions)
    check(members, partitions, given_out)
    for name in partitions:
        shares = [
            sum(tp.topic == name for tp in mine) for key, mine in given_out.items() if name in members[key].topics
        ]
        assert not shares or max(shares) - min(shares) <= 1
