"""The status of a member, without a member."""

from __future__ import annotations

import pytest

from aiokwire.group import (
    ClassicProtocolState,
    ConsumerProtocolState,
    CoordinatorFound,
    CoordinatorLost,
    GroupEvent,
    LoopBlocked,
    MemberStatus,
    RebalanceEnded,
    RebalanceStarted,
)
from aiokwire.group.status import OUT, STABLE
from aiokwire.watchdog import BlockedLoop


@pytest.fixture
def events() -> list[GroupEvent]:
    return []


async def test_a_rebalance_begins_once_and_ends_when_the_member_is_stable(events: list[GroupEvent]) -> None:
    status = MemberStatus("g", events.append)
    for state in (
        ClassicProtocolState.PREPARING_REBALANCE,
        ClassicProtocolState.COMPLETING_REBALANCE,
        ClassicProtocolState.RECONCILING,
    ):
        status.moved(state, -1)
    assert status.rebalancing_since is not None
    status.moved(ClassicProtocolState.STABLE, 3)
    assert events[0] == RebalanceStarted("g")
    assert isinstance(events[1], RebalanceEnded)
    assert (events[1].generation, len(events)) == (3, 2)
    assert status.rebalancing_since is None
    assert status.rebalance_took == events[1].seconds >= 0
    status.moved(ClassicProtocolState.STABLE, 3)
    assert len(events) == 2


async def test_a_rebalance_that_a_member_leaves_is_not_recorded_as_the_last_one(events: list[GroupEvent]) -> None:
    status = MemberStatus("g", events.append)
    status.moved(ConsumerProtocolState.JOINING, -1)
    status.moved(ConsumerProtocolState.LEFT, -1)
    assert [type(event) for event in events] == [RebalanceStarted, RebalanceEnded]
    assert status.rebalance_took is None


async def test_a_coordinator_is_lost_once_and_found_when_it_responds(events: list[GroupEvent]) -> None:
    status = MemberStatus("g", events.append)
    status.lost("no response")
    assert events == []
    assert status.last_error == "no response"
    status.answered(1)
    status.heartbeat_answered(1)
    assert status.heartbeat_at is not None
    status.lost("gone")
    status.lost("still gone")
    assert (status.coordinator, status.last_error) == (None, "still gone")
    status.answered(2)
    assert (status.coordinator, status.last_error) == (2, "")
    assert events == [CoordinatorFound("g", 1), CoordinatorLost("g", 1, "gone"), CoordinatorFound("g", 2)]


async def test_a_blocked_loop_is_recorded_and_published(events: list[GroupEvent]) -> None:
    status = MemberStatus("g", events.append)
    blocked = BlockedLoop(2.0, None, ())
    status.on_blocked(blocked)
    assert events == [LoopBlocked(blocked)]
    assert status.blocked is blocked
    assert status.blocked_until is not None


def test_a_state_is_not_both_stable_and_out() -> None:
    assert not STABLE & OUT
    assert {state.name for state in STABLE} == {"STABLE"}
