"""The states of a member as both protocols have them, and the events that wait for its driver. No I/O."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Mapping
from typing import Generic, TypeVar

StateT = TypeVar("StateT", bound=enum.Enum)
EventT = TypeVar("EventT", bound=enum.Enum)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StateTable(Generic[StateT, EventT]):
    """The states of one protocol's members, and the events that both protocols know."""

    transitions: Mapping[tuple[StateT, EventT], StateT]
    unjoined: StateT
    idle: StateT
    final: Collection[StateT]
    heartbeating: Collection[StateT]
    """In which the coordinator expects heartbeats."""
    join: EventT
    retry: EventT
    released: EventT
    expired: EventT
    refused: EventT
    fenced: EventT
    polled: EventT
    leave: EventT


class Signals(Generic[EventT]):
    """What others noticed and the driver has not handled yet: of several events, the most severe counts."""

    def __init__(self, order: tuple[EventT, ...]) -> None:
        """`order`: what may be signalled, the most severe first; the last one alone does not end the membership."""
        self._order = order
        self._pending: set[EventT] = set()

    def add(self, event: EventT) -> None:
        """Add an event.

        Raises: ValueError: it is not one that others may signal.
        """
        if event not in self._order:
            raise ValueError(f"{event} is not for others to signal")
        self._pending.add(event)

    def has(self, event: EventT) -> bool:
        """Whether an event is pending."""
        return event in self._pending

    @property
    def most_severe(self) -> EventT | None:
        return next((event for event in self._order if event in self._pending), None)

    @property
    def terminal(self) -> EventT | None:
        """The most severe event, if it ends the membership."""
        event = self.most_severe
        return None if event is self._order[-1] else event

    def discard(self, event: EventT) -> None:
        """The driver handles an event now."""
        self._pending.discard(event)

    def clear(self) -> None:
        """The membership ended or a new one begins: what was noticed before is obsolete."""
        self._pending.clear()
