"""Sticky assignors: balance, stickiness, racks, and malformed user data of other members."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiokwire.group.assignors import CooperativeStickyAssignor, StickyAssignor
from aiokwire.group.assignors.sticky import Memory, encode_memory
from aiokwire.types import TopicPartition

from .groups import Given, Group, Topics, alike, check, groups, member, topic, topics, tps


def eager(members: Group, partitions: Topics) -> dict[str, list[TopicPartition]]:
    return StickyAssignor().assign(members, partitions)


def cooperative(members: Group, partitions: Topics) -> dict[str, list[TopicPartition]]:
    return CooperativeStickyAssignor().assign(members, partitions)


def remembering(members: Group, before: Given, generation: int = 1) -> Group:
    """Return the members with their last assignment, in the formats of both assignors."""
    return {
        name: one._replace(
            owned=tuple(before.get(name, ())),
            generation=generation if name in before else -1,
            user_data=encode_memory(Memory(tuple(before[name]), generation)) if name in before else b"",
        )
        for name, one in members.items()
    }


def settle(members: Group, partitions: Topics, before: Given) -> tuple[Given, int]:
    """Return the final assignment of a cooperative group and the number of rounds. No partition
    ever has two owners."""
    held: dict[str, list[TopicPartition]] = {name: list(before.get(name, ())) for name in members}
    for rounds in range(1, 10):
        given_out = cooperative(remembering(members, held, rounds), partitions)
        check(members, partitions, given_out, complete=False)
        for name, mine in given_out.items():
            others = {tp for other, theirs in held.items() if other != name for tp in theirs}
            assert not others.intersection(mine), "assigned before its revocation"
        # A member that loses partitions joins again.
        again = any(set(held[name]) - set(mine) for name, mine in given_out.items())
        held = given_out
        if not again:
            return held, rounds
    raise AssertionError("the group does not settle")


def moved(before: Given, after: Given) -> int:
    return sum(len(set(mine) - set(after.get(name, ()))) for name, mine in before.items())


def improvable(members: Group, given_out: Given) -> bool:
    """Return whether a chain of moves would make shares more even, by a simple search of all
    chains."""
    for giver, mine in given_out.items():
        reached, frontier = {giver}, [giver]
        while frontier:
            one = frontier.pop()
            for other, subscription in members.items():
                if other not in reached and any(tp.topic in subscription.topics for tp in given_out[one]):
                    reached.add(other)
                    frontier.append(other)
        if any(len(given_out[other]) + 2 <= len(mine) for other in reached):
            return True
    return False


def test_only_the_partitions_of_a_leaving_member_move() -> None:
    partitions = topic("t", 2) | topic("u", 2) | topic("v", 2) | topic("w", 2)
    members = member("0", *"tuvw") | member("1", *"tuvw") | member("2", *"tuvw")
    before = eager(members, partitions)
    assert before == {"0": tps("t0 u1 w0"), "1": tps("t1 v0 w1"), "2": tps("u0 v1")}
    left = {name: one for name, one in members.items() if name != "1"}
    after = eager(remembering(left, before), partitions)
    assert all(set(before[name]) <= set(after[name]) for name in left)
    assert [len(mine) for mine in after.values()] == [4, 4]


def test_unequal_subscriptions_get_the_most_even_shares() -> None:
    partitions = topic("t", 1) | topic("u", 2) | topic("v", 3)
    members = member("0", "t") | member("1", *"tu") | member("2", *"tuv")
    assert eager(members, partitions) == {"0": tps("t0"), "1": tps("u0 u1"), "2": tps("v0 v1 v2")}


def test_a_chain_of_moves_is_found_if_no_single_move_helps() -> None:
    """A has three partitions of t, B two of u, C one of v: one of t moves to B, one of u to C."""
    partitions = topic("t", 3) | topic("u", 2) | topic("v", 1)
    members = member("A", "t") | member("B", *"tu") | member("C", *"uv")
    before = {"A": tps("t0 t1 t2"), "B": tps("u0 u1"), "C": tps("v0")}
    after = eager(remembering(members, before), partitions)
    assert sorted(len(mine) for mine in after.values()) == [2, 2, 2]
    assert moved(before, after) == 2


def test_a_single_member_and_members_without_topics() -> None:
    assert eager(member("a", "t"), topic("t", 2)) == {"a": tps("t0 t1")}
    assert eager(member("a"), topic("t", 2)) == {"a": []}
    assert eager(member("a", "gone"), {}) == {"a": []}
    assert eager(member("a", "t") | member("b"), topic("t", 2)) == {"a": tps("t0 t1"), "b": []}


@given(groups(), topics())
def test_all_partitions_are_assigned_and_no_move_improves_balance(members: Group, partitions: Topics) -> None:
    given_out = eager(members, partitions)
    check(members, partitions, given_out)
    assert not improvable(members, given_out)


@given(groups(), groups(), topics(), topics(), st.booleans())
def test_shares_are_even_after_any_change_and_then_stable(
    members: Group, others: Group, partitions: Topics, other_partitions: Topics, same: bool
) -> None:
    if same:
        members, others = alike(members), alike(others)
    before = eager(others, other_partitions)
    after = eager(remembering(members, before), partitions)
    check(members, partitions, after)
    assert not improvable(members, after)
    assert eager(remembering(members, after), partitions) == after, "nothing changed, so nothing moves"


@given(groups(racked=False), groups(racked=False), topics())
def test_members_with_equal_topics_keep_all_that_their_share_allows(
    members: Group, others: Group, partitions: Topics
) -> None:
    members = alike(members)
    topics_wanted = next(iter(members.values())).topics
    others = {name: one._replace(topics=topics_wanted) for name, one in others.items()}
    before = eager(others, partitions)
    after = eager(remembering(members, before), partitions)
    shares = sorted((len(mine) for mine in after.values()), reverse=True)
    had = sorted((len(before.get(name, ())) for name in members), reverse=True)
    kept = sum(len(set(before[name]) & set(mine)) for name, mine in after.items() if name in before)
    assert kept == sum(map(min, had, shares))


@given(groups(racked=False), groups(racked=False), topics())
def test_members_that_stay_lose_no_more_than_what_leaving_members_free(
    members: Group, others: Group, partitions: Topics
) -> None:
    all_members = others | members
    before = eager(all_members, partitions)
    after = eager(remembering(members, before), partitions)
    # Balance may require moves among the remaining members, but no more than the number of freed partitions.
    assert moved({name: before[name] for name in members}, after) <= sum(
        len(mine) for name, mine in before.items() if name not in members
    )


@given(groups(), groups(), topics(), topics(), st.booleans())
def test_a_cooperative_group_revokes_then_assigns_and_settles(
    members: Group, others: Group, partitions: Topics, other_partitions: Topics, same: bool
) -> None:
    if same:
        members, others = alike(members), alike(others)
    before, _ = settle(others, other_partitions, {})
    after, rounds = settle(members, partitions, before)
    check(members, partitions, after)
    assert rounds <= 3


@given(groups(racked=True), topics())
def test_racks_never_reduce_balance(members: Group, partitions: Topics) -> None:
    given_out = eager(members, partitions)
    plain = eager({name: one._replace(rack_id=None) for name, one in members.items()}, partitions)
    assert sorted(map(len, given_out.values())) == sorted(map(len, plain.values()))


def test_partitions_are_read_from_their_readers_rack() -> None:
    members = member("1", "t", rack="a") | member("2", "t", rack="b") | member("3", "t", rack="c")
    partitions = topic("t", 6, "c", "b", "a")
    near = {"1": tps("t2 t5"), "2": tps("t1 t4"), "3": tps("t0 t3")}
    assert eager(members, partitions) == near
    before = {"1": tps("t0 t1"), "2": tps("t2 t3"), "3": tps("t4 t5")}
    assert eager(remembering(members, before), partitions) == near, "racks take precedence over stickiness"


def test_no_partition_moves_if_all_racks_have_replicas() -> None:
    members = member("1", "t", rack="a") | member("2", "t", rack="b")
    before = {"1": tps("t1 t3"), "2": tps("t0 t2")}
    assert eager(remembering(members, before), topic("t", 4, "ab")) == before


def test_the_claim_of_the_newest_generation_counts() -> None:
    members = member("a", "t") | member("b", "t")
    old = remembering(members, {"a": tps("t0 t1"), "b": []}, 3)
    new = remembering(members, {"b": tps("t0"), "a": []}, 4)
    mixed = {"a": old["a"], "b": new["b"]}
    assert eager(mixed, topic("t", 2)) == {"a": tps("t1"), "b": tps("t0")}
    assert cooperative(mixed, topic("t", 2)) == {"a": tps("t1"), "b": tps("t0")}


def test_a_partition_claimed_twice_in_one_generation_is_first_revoked_from_both() -> None:
    members = member("a", "t") | member("b", "t")
    both = remembering(members, {"a": tps("t0"), "b": tps("t0")}, 3)
    check(members, topic("t", 1), eager(both, topic("t", 1)))
    assert cooperative(both, topic("t", 1)) == {"a": [], "b": []}


def test_a_partition_of_a_former_subscription_is_assigned_after_its_revocation() -> None:
    members = member("a", "u") | member("b", "t")
    claiming = remembering(members, {"a": tps("t0")})
    assert cooperative(claiming, topic("t", 1) | topic("u", 1)) == {"a": tps("u0"), "b": []}


@pytest.mark.parametrize("data", [b"\xff", b"\0\0\0\x05", b"\x7f\xff\xff\xff", b"garbage" * 9])
def test_malformed_user_data_is_not_a_claim(data: bytes) -> None:
    members = member("a", "t") | member("b", "t")
    changed = {name: one._replace(user_data=data) for name, one in members.items()}
    assert eager(changed, topic("t", 2)) == {"a": tps("t0"), "b": tps("t1")}
    assert cooperative(changed, topic("t", 2)) == {"a": tps("t0"), "b": tps("t1")}


@given(groups(), topics(), st.binary(max_size=40))
def test_no_user_data_of_another_member_breaks_the_assignment(members: Group, partitions: Topics, data: bytes) -> None:
    changed = {name: one._replace(user_data=data) for name, one in members.items()}
    check(members, partitions, eager(changed, partitions))
    check(members, partitions, cooperative(changed, partitions))


def test_members_send_their_last_assignment() -> None:
    one = StickyAssignor()
    assert one.user_data(["t"]) == b""
    one.on_assignment(tps("t1 t0 u4"), 5)
    members = member("a", "t", "u") | member("b", "t", "u")
    members["a"] = members["a"]._replace(user_data=one.user_data(["t", "u"]))
    assert set(eager(members, topic("t", 2) | topic("u", 5))["a"]) >= set(tps("t0 t1 u4"))
    two = CooperativeStickyAssignor()
    assert two.user_data([]) == b"\xff\xff\xff\xff"
    two.on_assignment([], 5)
    assert two.user_data([]) == b"\0\0\0\x05"
