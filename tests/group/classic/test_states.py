"""The state table of members that use the classic protocol. No I/O."""

from __future__ import annotations

import pytest

from aiokwire.group.classic.states import (
    FINAL,
    HEARTBEATING,
    JOINING,
    TRANSITIONS,
    ClassicProtocolState,
)
from aiokwire.group.state_table import MemberEvent
from aiokwire.machine import InvalidTransition, Machine


def test_every_state_can_be_reached() -> None:
    reached = {ClassicProtocolState.UNJOINED}
    while True:
        more = {target for (source, _), target in TRANSITIONS.items() if source in reached} - reached
        if not more:
            break
        reached |= more
    assert reached == set(ClassicProtocolState)


def test_every_state_that_is_not_final_can_be_left_by_closing() -> None:
    for state in ClassicProtocolState:
        assert ((state, MemberEvent.LEAVE) in TRANSITIONS) == (state not in FINAL)
    assert not [source for source, _ in TRANSITIONS if source in FINAL]


def test_every_event_moves_some_state() -> None:
    of_consumer_protocol = {MemberEvent.ASSIGNMENT_CHANGED, MemberEvent.UNSERVED}
    assert {event for _, event in TRANSITIONS} == set(MemberEvent) - of_consumer_protocol


def test_a_generation_may_be_lost_wherever_there_is_one() -> None:
    for state in HEARTBEATING | JOINING:
        assert TRANSITIONS[state, MemberEvent.LOST] is ClassicProtocolState.LOSING
        assert TRANSITIONS[state, MemberEvent.FENCED] is ClassicProtocolState.FAILED


def test_a_member_goes_from_join_to_rebalance() -> None:
    machine: Machine[ClassicProtocolState, MemberEvent] = Machine("m", TRANSITIONS, ClassicProtocolState.UNJOINED)
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
