"""From a member's partitions to its target: revoke first, then take free ones."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from aiokwire.broker.groups.consumer_decisions import reconcile
from aiokwire.broker.groups.consumer_group import ConsumerMember, Part, Parts
from aiokwire.broker.groups.requests import Client
from aiokwire.broker.groups.states import ReconciliationState

T = b"t" * 16


def parts(*numbers: int) -> Parts:
    return frozenset(Part(T, number) for number in numbers)


def member(epoch: int, *numbers: int, state: ReconciliationState = ReconciliationState.STABLE) -> ConsumerMember:
    return ConsumerMember(
        "m", Client("c", "/h"), epoch=epoch, state=state, assigned=dict.fromkeys(sorted(parts(*numbers)), epoch)
    )


def step(
    one: ConsumerMember, target: Parts, epoch: int, *, owned: Parts | None = None, taken: Parts = frozenset()
) -> ConsumerMember:
    return reconcile(one, target, epoch, owned=owned, is_taken=lambda part: part in taken)


def test_a_new_member_gets_the_free_partitions() -> None:
    got = step(member(0), parts(0, 1), 3, owned=parts())
    assert (got.state, got.epoch, got.assigned) == (ReconciliationState.STABLE, 3, {Part(T, 0): 3, Part(T, 1): 3})


def test_a_member_at_its_target_stays_as_it_is() -> None:
    one = member(3, 0, 1)
    assert step(one, parts(0, 1), 3) is one


def test_revocation_comes_first_and_the_epoch_waits_for_it() -> None:
    one = member(3, 0, 1)
    giving = step(one, parts(1, 2), 4)
    assert giving.state is ReconciliationState.UNREVOKED_PARTITIONS
    assert (giving.epoch, frozenset(giving.assigned), frozenset(giving.revoking)) == (3, parts(1), parts(0))
    assert step(giving, parts(1, 2), 4) is giving, "it reported nothing"
    assert step(giving, parts(1, 2), 4, owned=parts(0, 1)) is giving, "it still has it"
    done = step(giving, parts(1, 2), 4, owned=parts(1))
    assert (done.state, done.epoch, done.previous_epoch) == (ReconciliationState.STABLE, 4, 3)
    assert done.assigned == {Part(T, 1): 3, Part(T, 2): 4}, "what it kept it has since the earlier epoch"
    assert not done.revoking


def test_a_member_waits_for_partitions_of_others() -> None:
    waiting = step(member(0), parts(0, 1), 2, owned=parts(), taken=parts(1))
    assert (waiting.state, waiting.epoch) == (ReconciliationState.UNRELEASED_PARTITIONS, 2)
    assert frozenset(waiting.assigned) == parts(0)
    again = step(waiting, parts(0, 1), 2, taken=parts(1))
    assert again.placed == waiting.placed
    assert frozenset(step(again, parts(0, 1), 2).assigned) == parts(0, 1)


def test_a_target_that_changes_meanwhile_is_followed() -> None:
    giving = step(member(3, 0, 1), parts(1), 4)
    back = step(giving, parts(0, 1), 5, owned=parts(1))
    assert (back.state, back.epoch, frozenset(back.assigned)) == (ReconciliationState.STABLE, 5, parts(0, 1))
    waiting = step(member(3, 0), parts(0, 1), 4, taken=parts(1))
    other = step(waiting, parts(0, 2), 5, taken=parts(1))
    assert (other.state, other.epoch, frozenset(other.assigned)) == (ReconciliationState.STABLE, 5, parts(0, 2))


numbers = st.frozensets(st.integers(0, 7)).map(lambda some: parts(*some))


@given(targets=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=6))
def test_no_partition_has_two_owners_and_all_members_reach_their_targets(targets: list[tuple[Parts, Parts]]) -> None:
    members = {"a": dataclasses.replace(member(0), member_id="a"), "b": dataclasses.replace(member(0), member_id="b")}

    def has(name: str) -> Parts:
        return frozenset(members[name].assigned) | frozenset(members[name].revoking)

    for epoch, (one, other) in enumerate(targets, 1):
        goal = {"a": one - other, "b": other}
        for _ in range(6):
            for name, rival in (("a", "b"), ("b", "a")):
                rivals = has(rival)
                members[name] = step(
                    members[name], goal[name], epoch, owned=frozenset(members[name].assigned), taken=rivals
                )
                assert not has("a") & has("b")
        for name, wanted in goal.items():
            assert members[name].is_at(epoch)
            assert frozenset(members[name].assigned) == wanted
