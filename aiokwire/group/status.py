"""The status of a member: its state, its coordinator, its heartbeats, its rebalances. Written by
the parts of the member, read by health checks; every notable change is published as an event.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final, TypeAlias

from aiokwire.clock import loop_time
from aiokwire.group.classic.states import FINAL as CLASSIC_FINAL
from aiokwire.group.classic.states import ClassicProtocolState
from aiokwire.group.consumer_protocol.states import FINAL as CONSUMER_FINAL
from aiokwire.group.consumer_protocol.states import ConsumerProtocolState
from aiokwire.group.metrics import HEARTBEATS, LOOP_DELAY, REBALANCES
from aiokwire.metrics import Histogram
from aiokwire.watchdog import BlockedLoop

ProtocolState: TypeAlias = ClassicProtocolState | ConsumerProtocolState

STABLE: Final = frozenset({ClassicProtocolState.STABLE, ConsumerProtocolState.STABLE})
# States of a member that is not in the group and is not joining it.
OUT: Final = frozenset({ClassicProtocolState.IDLE, ConsumerProtocolState.IDLE}) | CLASSIC_FINAL | CONSUMER_FINAL


@dataclasses.dataclass(frozen=True, slots=True)
class CoordinatorFound:
    """The group's coordinator responds, for the first time or after a `CoordinatorLost`."""

    group_id: str
    node_id: int


@dataclasses.dataclass(frozen=True, slots=True)
class CoordinatorLost:
    """The group's coordinator does not respond, or has moved. It is being looked up."""

    group_id: str
    node_id: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class RebalanceStarted:
    """The member joins, or the group reassigns partitions, perhaps not those of this member."""

    group_id: str


@dataclasses.dataclass(frozen=True, slots=True)
class RebalanceEnded:
    """The assignment of this member is in force, or the member has left during the rebalance."""

    group_id: str
    seconds: float
    """Since `RebalanceStarted`."""
    generation: int
    """Or member epoch; -1 if the member has none."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoopBlocked:
    """The event loop was blocked for a second or more."""

    blocked: BlockedLoop


GroupEvent = CoordinatorFound | CoordinatorLost | RebalanceStarted | RebalanceEnded | LoopBlocked


def _ignore(_event: GroupEvent) -> None:
    """Drop the event: no subscriber."""


class MemberStatus:
    """The status of one member. Times are on the loop's clock."""

    def __init__(self, group_id: str, publish: Callable[[GroupEvent], None] = _ignore) -> None:
        self._group_id = group_id
        self._publish = publish
        self.state: ProtocolState | None = None  # None: not started
        self.coordinator: int | None = None  # the node that responded last; None while none responds
        self.last_error: str = ""  # why none does
        self.heartbeat_at: float | None = None  # when a heartbeat was acknowledged last
        self.rebalancing_since: float | None = None
        self.rebalanced_at: float | None = None  # when the last one ended
        self.rebalance_took: float | None = None  # seconds
        self.members: int | None = None  # of the last generation; None if this member does not lead it
        self.blocked: BlockedLoop | None = None  # the last block of the loop
        self.blocked_until: float | None = None
        self.rebalances: Histogram = REBALANCES.new_histogram()  # their durations, in seconds
        self.heartbeats: Histogram = HEARTBEATS.new_histogram()  # the time to the response
        self.loop_delays: Histogram = LOOP_DELAY.new_histogram()

    def moved(self, state: ProtocolState, generation: int) -> None:
        """Record the member's new state."""
        now = loop_time()
        self.state = state
        if state not in STABLE and state not in OUT:
            if self.rebalancing_since is None:
                self.rebalancing_since = now
                self._publish(RebalanceStarted(self._group_id))
        elif self.rebalancing_since is not None:
            took, self.rebalancing_since = now - self.rebalancing_since, None
            if state in STABLE:
                self.rebalanced_at, self.rebalance_took = now, took
                self.rebalances.observe(took)
            self._publish(RebalanceEnded(self._group_id, took, generation))

    def joined(self, members: int | None) -> None:
        """Record the member count of a new generation; None if this member does not lead."""
        self.members = members

    def answered(self, node_id: int) -> None:
        """Record a response of the coordinator."""
        if self.coordinator != node_id:
            self.coordinator, self.last_error = node_id, ""
            self._publish(CoordinatorFound(self._group_id, node_id))

    def heartbeat_answered(self, node_id: int) -> None:
        """Record a response to a heartbeat."""
        self.heartbeat_at = loop_time()
        self.answered(node_id)

    def heartbeat_took(self, seconds: float) -> None:
        """Record the time between a heartbeat and its response."""
        self.heartbeats.observe(seconds)

    def loop_delayed(self, seconds: float) -> None:
        """Record how long the loop took to run a callback."""
        self.loop_delays.observe(seconds)

    def lost(self, reason: str) -> None:
        """Record that the coordinator did not respond, or does not coordinate the group."""
        node_id, self.coordinator = self.coordinator, None
        self.last_error = reason
        if node_id is not None:
            self._publish(CoordinatorLost(self._group_id, node_id, reason))

    def on_blocked(self, blocked: BlockedLoop) -> None:
        """Record that the loop was blocked until now."""
        self.blocked, self.blocked_until = blocked, loop_time()
        self._publish(LoopBlocked(blocked))
