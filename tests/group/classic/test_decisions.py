"""Decisions of a member about error codes and partitions. No I/O."""

from __future__ import annotations

import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.group.classic import decisions
from aiokwire.group.classic.states import TRANSITIONS, ClassicProtocolState
from aiokwire.group.state_table import MemberEvent, Signals
from aiokwire.types import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.mark.parametrize("code", [code for code in ErrorCode if code])
def test_every_error_code_leads_to_a_transition(code: ErrorCode) -> None:
    assert (ClassicProtocolState.PREPARING_REBALANCE, decisions.on_join_error(code)) in TRANSITIONS
    assert (ClassicProtocolState.COMPLETING_REBALANCE, decisions.on_sync_error(code)) in TRANSITIONS
    beat = decisions.on_heartbeat_error(code)
    assert beat is None or (ClassicProtocolState.STABLE, beat) in TRANSITIONS


@pytest.mark.parametrize(
    ("code", "join", "sync", "beat"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, "LOST", "LOST", "LOST"),
        (ErrorCode.ILLEGAL_GENERATION, "LOST", "LOST", "LOST"),
        (ErrorCode.FENCED_INSTANCE_ID, "FENCED", "FENCED", "FENCED"),
        (ErrorCode.REBALANCE_IN_PROGRESS, "RETRY", "REBALANCE", "REBALANCE"),
        (ErrorCode.MEMBER_ID_REQUIRED, "RETRY", "REFUSED", "REBALANCE"),
        (ErrorCode.NOT_COORDINATOR, "RETRY", "RETRY", None),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "RETRY", "RETRY", None),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, "REFUSED", "REFUSED", "REBALANCE"),
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "REFUSED", "REFUSED", "REBALANCE"),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "REFUSED", "REFUSED", "REBALANCE"),
    ],
)
def test_the_event_of_an_error_code(code: ErrorCode, join: str, sync: str, beat: str | None) -> None:
    assert decisions.on_join_error(code).name == join
    assert decisions.on_sync_error(code).name == sync
    found = decisions.on_heartbeat_error(code)
    assert (found and found.name) == beat


def test_a_heartbeat_without_an_error_changes_nothing() -> None:
    assert decisions.on_heartbeat_error(0) is None


@pytest.mark.parametrize(
    ("code", "event"),
    [
        (ErrorCode.REBALANCE_IN_PROGRESS, MemberEvent.REBALANCE),
        (ErrorCode.UNKNOWN_MEMBER_ID, MemberEvent.LOST),
        (ErrorCode.ILLEGAL_GENERATION, MemberEvent.LOST),
        (ErrorCode.FENCED_INSTANCE_ID, MemberEvent.FENCED),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, None),
    ],
)
def test_the_event_of_a_refused_commit(code: ErrorCode, event: MemberEvent | None) -> None:
    assert decisions.on_commit_error(code) is event


def test_the_most_severe_of_several_signals_counts() -> None:
    def noticed(*events: MemberEvent) -> tuple[MemberEvent | None, MemberEvent | None]:
        for event in events:
            signals.add(event)
        return signals.most_severe, signals.terminal

    signals = Signals(decisions.SEVERITY)
    assert noticed() == (None, None)
    assert noticed(MemberEvent.REBALANCE) == (MemberEvent.REBALANCE, None)
    assert noticed(MemberEvent.EXPIRED, MemberEvent.LOST) == (
        MemberEvent.LOST,
        MemberEvent.LOST,
    )
    signals.clear()
    assert noticed() == (None, None)
    with pytest.raises(ValueError, match="JOINED"):
        signals.add(MemberEvent.JOINED)


def test_an_eager_member_revokes_all_partitions_before_a_join_a_cooperative_one_those_of_former_topics() -> None:
    owned = {A0, A1, B0}
    assert decisions.plan_revocation(owned, {"a", "b"}, cooperative=False) == owned
    assert decisions.plan_revocation(owned, {"a", "b"}, cooperative=True) == frozenset()
    assert decisions.plan_revocation(owned, {"a"}, cooperative=True) == {B0}


def test_the_assignment_is_reconciled_with_the_owned_partitions() -> None:
    nothing: frozenset[TopicPartition] = frozenset()
    plan = decisions.plan_reconciliation({A0, A1}, [A1, B0], cooperative=True)
    assert plan == decisions.Reconciliation(frozenset({A0}), frozenset({B0}), True)
    plan = decisions.plan_reconciliation({A0}, [A0, B0], cooperative=True)
    assert plan == decisions.Reconciliation(nothing, frozenset({B0}), False), "no revocation, so no rejoin"
    plan = decisions.plan_reconciliation((), [A0], cooperative=False)
    assert plan == decisions.Reconciliation(nothing, frozenset({A0}), False)
