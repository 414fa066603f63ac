"""The table of a member's states, alone."""

from __future__ import annotations

import pytest

from aiokwire.group.states import BEATING, FINAL, JOINING, TRANSITIONS, MemberEvent, MemberState
from aiokwire.machine import InvalidTransition, Machine


def test_every_state_can_be_reached() -> None:
    reached = {MemberState.UNJOINED}
    while True:
        more = {target for (source, _), target in TRANSITIONS.items() if source in reached} - reached
        if not more:
            break
        reached |= more
    assert reached == set(MemberState)


def test_every_state_that_is_not_final_can_be_left_by_closing() -> None:
    for state in MemberState:
        assert ((state, MemberEvent.LEAVE) in TRANSITIONS) == (state not in FINAL)
    assert not [source for source, _ in TRANSITIONS if source in FINAL]


def test_every_event_moves_some_state() -> None:
    assert {event for _, event in TRANSITIONS} == set(MemberEvent)


def test_a_generation_may_be_lost_wherever_there_is_one() -> None:
    for state in BEATING | JOINING:
        assert TRANSITIONS[state, MemberEvent.LOST] is MemberState.LOSING
        assert TRANSITIONS[state, MemberEvent.FENCED] is MemberState.FAILED


def test_the_usual_way_round() -> None:
    machine: Machine[MemberState, MemberEvent] = Machine("m", TRANSITIONS, MemberState.UNJOINED)
    way = ["JOIN", "RETRY", "JOINED", "SYNCED", "SETTLED", "REBALANCE", "REVOKED", "JOINED", "SYNCED", "REBALANCE"]
    states = [machine.fire(MemberEvent[name]).name for name in way]
    assert states == [
        "PREPARING_REBALANCE",
        "PREPARING_REBALANCE",
        "COMPLETING_REBALANCE",
        "RECONCILING",
        "STABLE",
        "REVOKING",
        "PREPARING_REBALANCE",
        "COMPLETING_REBALANCE",
        "RECONCILING",
        "REVOKING",
    ]
    with pytest.raises(InvalidTransition):
        machine.fire(MemberEvent.SETTLED)
