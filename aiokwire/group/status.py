"""The status of a member: its state, its coordinator, its heartbeats, its rebalances. Written by the parts of the
member, read by health checks; every notable change is published as an event.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final, TypeAlias

import anyio

from aiokwire.group.classic.states import ClassicProtocolState
from aiokwire.group.consumer_protocol.states import ConsumerProtocolState
from aiokwire.watchdog import BlockedLoop

ProtocolState: TypeAlias = ClassicProtocolState | ConsumerProtocolState

STABLE: Final = frozenset({ClassicProtocolState.STABLE, ConsumerProtocolState.STABLE})
# Not in the group, and not on the way into it.
OUT: Final = frozenset(
    {
        *(ClassicProtocolState.IDLE, ClassicProtocolState.FAILED, ClassicProtocolState.LEFT),
        *(
            ConsumerProtocolState.IDLE,
            ConsumerProtocolState.UNSERVED,
            ConsumerProtocolState.FAILED,
            ConsumerProtocolState.LEFT,
        ),
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class CoordinatorFound:
    """The group's coordinator answers: the first one, or one after a `CoordinatorLost`."""

    group_id: str
    node_id: int


@dataclasses.dataclass(frozen=True, slots=True)
class CoordinatorLost:
    """The group's coordinator no longer answers, or no longer coordinates the group. It is being looked up."""

    group_id: str
    node_id: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class RebalanceStarted:
    """The member joins, or partitions of the group move. It says nothing yet about this member's partitions."""

    group_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class RebalanceEnded:
    """The assignment of this member is in force; or it has left, as when it was closed in the midst of a rebalance."""

    group_id: str
    seconds: float
    """Since `RebalanceStarted`."""
    generation: int
    """Or epoch; -1 when the member is in none now."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoopBlocked:
    """The event loop did nothing but one thing, for a second or more."""

    blocked: BlockedLoop


GroupEvent = CoordinatorFound | CoordinatorLost | RebalanceStarted | RebalanceEnded | LoopBlocked


def _nobody(_event: GroupEvent) -> None:
    """Nobody wants to know."""


class MemberStatus:
    """How a member is. Times are on the loop's clock."""

    def __init__(self, group_id: str, publish: Callable[[GroupEvent], None] = _nobody) -> None:
        self._group_id = group_id
        self._publish = publish
        self.state: ProtocolState | None = None  # None: it has not begun
        self.coordinator: int | None = None  # that answered last; None while none does
        self.trouble = ""  # why none does
        self.heartbeat_at: float | None = None  # when one was answered last
        self.rebalancing_since: float | None = None
        self.rebalanced_at: float | None = None  # when the last one ended
        self.rebalance_took: float | None = None  # seconds
        self.members: int | None = None  # of the last generation; None when this member does not lead it
        self.blocked: BlockedLoop | None = None  # the last time in which the loop was blocked
        self.blocked_until: float | None = None

    def moved(self, state: ProtocolState, generation: int) -> None:
        """The member is in another state."""
        now = anyio.current_time()
        self.state = state
        if state not in STABLE and state not in OUT:
            if self.rebalancing_since is None:
                self.rebalancing_since = now
                self._publish(RebalanceStarted(self._group_id))
        elif self.rebalancing_since is not None:
            took, self.rebalancing_since = now - self.rebalancing_since, None
            if state in STABLE:
                self.rebalanced_at, self.rebalance_took = now, took
            self._publish(RebalanceEnded(self._group_id, took, generation))

    def answered(self, node_id: int) -> None:
        """The coordinator answered as such."""
        if self.coordinator != node_id:
            self.coordinator, self.trouble = node_id, ""
            self._publish(CoordinatorFound(self._group_id, node_id))

    def heartbeat_answered(self, node_id: int) -> None:
        """It answered a heartbeat."""
        self.heartbeat_at = anyio.current_time()
        self.answered(node_id)

    def lost(self, reason: str) -> None:
        """It did not answer, or does not coordinate this group."""
        node_id, self.coordinator = self.coordinator, None
        self.trouble = reason
        if node_id is not None:
            self._publish(CoordinatorLost(self._group_id, node_id, reason))

    def on_blocked(self, blocked: BlockedLoop) -> None:
        """The loop was blocked until now."""
        self.blocked, self.blocked_until = blocked, anyio.current_time()
        self._publish(LoopBlocked(blocked))
