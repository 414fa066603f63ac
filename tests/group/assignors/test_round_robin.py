"""Round robin: partitions go in turn to the members that subscribe to them."""

from __future__ import annotations

from hypothesis import given

from aiokwire.group.assignors import RoundRobinAssignor

from .groups import Group, Topics, alike, check, groups, member, topic, topics, tps


def test_partitions_go_to_members_in_turn() -> None:
    members = member("two", "t", "u") | member("one", "t", "u")
    given_out = RoundRobinAssignor().assign(members, topic("t", 3) | topic("u", 3))
    assert given_out == {"one": tps("t0 t2 u1"), "two": tps("t1 u0 u2")}


def test_a_member_without_the_topic_is_skipped() -> None:
    members = member("a", "t") | member("b", "t", "u") | member("c", "t", "u", "v")
    given_out = RoundRobinAssignor().assign(members, topic("t", 1) | topic("u", 2) | topic("v", 3))
    assert given_out == {"a": tps("t0"), "b": tps("u0"), "c": tps("u1 v0 v1 v2")}


@given(groups(), topics())
def test_all_partitions_are_assigned(members: Group, partitions: Topics) -> None:
    check(members, partitions, RoundRobinAssignor().assign(members, partitions))
    same = alike(members)
    shares = [len(mine) for mine in RoundRobinAssignor().assign(same, partitions).values()]
    assert max(shares) - min(shares) <= 1
