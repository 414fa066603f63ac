"""The state table and decisions of members that use the consumer protocol. No I/O."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.group.consumer_protocol import decisions
from aiokwire.group.consumer_protocol.requests import Part
from aiokwire.group.consumer_protocol.states import (
    FINAL,
    HEARTBEATING,
    TRANSITIONS,
    ConsumerProtocolState,
)
from aiokwire.group.state_table import MemberEvent, Signals
from aiokwire.types import TopicPartition

T, U = b"t" * 16, b"u" * 16
NAMES = {T: "t", U: "u"}


def test_every_state_can_be_reached_and_every_event_moves_some_state() -> None:
    reached = {ConsumerProtocolState.UNJOINED}
    while more := {target for (source, _), target in TRANSITIONS.items() if source in reached} - reached:
        reached |= more
    assert reached == set(ConsumerProtocolState)
    of_classic_protocol = {MemberEvent.SYNCED, MemberEvent.REVOKED, MemberEvent.INCOMPATIBLE, MemberEvent.REBALANCE}
    assert {event for _, event in TRANSITIONS} == set(MemberEvent) - of_classic_protocol


def test_every_state_that_is_not_final_can_be_left_by_closing() -> None:
    for state in ConsumerProtocolState:
        assert ((state, MemberEvent.LEAVE) in TRANSITIONS) == (state not in FINAL)
    assert not [source for source, _ in TRANSITIONS if source in FINAL]


@pytest.mark.parametrize("code", [code for code in ErrorCode if code])
def test_every_error_code_leads_to_a_transition(code: ErrorCode) -> None:
    assert (ConsumerProtocolState.JOINING, decisions.on_join_error(code)) in TRANSITIONS
    for found in (decisions.on_heartbeat_error(code), decisions.on_commit_error(code)):
        for state in HEARTBEATING:
            assert found is None or (state, found) in TRANSITIONS


@pytest.mark.parametrize(
    ("code", "join", "beat"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, "LOST", "LOST"),
        (ErrorCode.FENCED_MEMBER_EPOCH, "LOST", "LOST"),
        (ErrorCode.FENCED_INSTANCE_ID, "FENCED", "FENCED"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "REFUSED", "LOST"),
        (ErrorCode.UNSUPPORTED_VERSION, "UNSERVED", "REFUSED"),
        (ErrorCode.UNRELEASED_INSTANCE_ID, "RETRY", "REFUSED"),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, "REFUSED", "REFUSED"),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, "REFUSED", "REFUSED"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "REFUSED", "REFUSED"),
        (ErrorCode.NOT_COORDINATOR, "RETRY", None),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "RETRY", None),
    ],
)
def test_the_event_of_an_error_code(code: ErrorCode, join: str, beat: str | None) -> None:
    assert decisions.on_join_error(code).name == join
    found = decisions.on_heartbeat_error(code)
    assert (found and found.name) == beat


def test_the_most_severe_signal_comes_first() -> None:
    signals = Signals(decisions.SEVERITY)
    for event in decisions.SEVERITY:
        signals.add(event)
    for event in decisions.SEVERITY:
        assert signals.most_severe is event
        signals.discard(event)
    assert signals.most_severe is None


def test_partitions_without_a_name_wait_and_unassigned_ones_are_revoked() -> None:
    target = frozenset({Part(T, 0), Part(T, 1), Part(U, 0)})
    owned = {TopicPartition("t", 1), TopicPartition("t", 2)}
    plan = decisions.plan_reconciliation(owned, target, {T: "t"})
    assert plan.revoke == {TopicPartition("t", 2)}
    assert plan.add == {TopicPartition("t", 0)}
    assert decisions.held_of(target, {T: "t"}, owned) == {Part(T, 1)}
    assert decisions.plan_reconciliation(owned, target, NAMES).add == {TopicPartition("t", 0), TopicPartition("u", 0)}
