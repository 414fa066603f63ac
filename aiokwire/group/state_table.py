"""The events that move a member, the states that members of both protocols have, and the events
that wait for the driver. No I/O.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

StateT = TypeVar("StateT", bound=enum.Enum)


class MemberEvent(enum.Enum):
    """The events that move a member from one state to another."""

    JOIN = enum.auto()  # the member is ready to join
    JOINED = enum.auto()  # the coordinator accepted the join
    SYNCED = enum.auto()  # classic: SyncGroup returned the assignment
    SETTLED = enum.auto()  # the assignment is in force
    ASSIGNMENT_CHANGED = enum.auto()  # KIP-848: the coordinator sent another assignment
    REVOKED = enum.auto()  # classic: the partitions that must not be kept during a join are revoked
    INCOMPATIBLE = enum.auto()  # classic: the group needs an assignor that can only be offered without partitions
    RETRY = enum.auto()  # an attempt failed and may succeed later
    REBALANCE = enum.auto()  # classic: join again, still in the generation
    LOST = enum.auto()  # the membership is gone: other members may have the partitions already
    RELEASED = enum.auto()  # the lost partitions are released
    EXPIRED = enum.auto()  # the application made no progress for max_poll_interval_ms
    REFUSED = enum.auto()  # the coordinator refuses the member, and a retry does not help
    POLLED = enum.auto()  # the application reads again
    FENCED = enum.auto()  # another member has the instance id
    UNSERVED = enum.auto()  # KIP-848: the broker does not support the protocol
    LEAVE = enum.auto()  # the consumer is closed


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StateTable(Generic[StateT]):
    """The transitions of one protocol's members, and the states that both protocols have."""

    transitions: Mapping[tuple[StateT, MemberEvent], StateT]
    unjoined: StateT
    losing: StateT
    idle: StateT
    final: Collection[StateT]
    heartbeating: Collection[StateT]
    """The states in which the coordinator expects heartbeats."""


class Signals:
    """The events that the driver has not handled yet. Of several, the most severe counts."""

    def __init__(self, order: tuple[MemberEvent, ...]) -> None:
        """`order`: the most severe event first; all but the last end the membership."""
        self._order = order
        self._pending: set[MemberEvent] = set()

    def add(self, event: MemberEvent) -> None:
        """Add an event.

        Raises: ValueError: the event may not be signalled.
        """
        if event not in self._order:
            raise ValueError(f"{event} must not be signalled, only fired by the driver")
        self._pending.add(event)

    def has(self, event: MemberEvent) -> bool:
        """Return whether an event is pending."""
        return event in self._pending

    @property
    def most_severe(self) -> MemberEvent | None:
        return next((event for event in self._order if event in self._pending), None)

    @property
    def terminal(self) -> MemberEvent | None:
        """The most severe event, if it ends the membership."""
        event = self.most_severe
        return None if event is self._order[-1] else event

    def discard(self, event: MemberEvent) -> None:
        """Remove an event that the driver handles now."""
        self._pending.discard(event)

    def clear(self) -> None:
        """Remove all events: the membership that they belong to has ended."""
        self._pending.clear()
