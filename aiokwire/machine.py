"""State machines as tables: an enum of states, an enum of events, a dict of transitions.

One driver fires events; everyone else reads `state`. `mermaid` draws a table for the docs.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from aiokwire.errors import KafkaError

StateT = TypeVar("StateT", bound=enum.Enum)
EventT = TypeVar("EventT", bound=enum.Enum)

logger: logging.Logger = logging.getLogger(__name__)


class InvalidTransition(KafkaError):
    """An event without a transition from the current state: a bug of this package, not a broker."""


class Machine(Generic[StateT, EventT]):
    """A state machine with a table of transitions."""

    __slots__ = ("_on_move", "_table", "name", "state")

    def __init__(
        self,
        name: str,
        table: Mapping[tuple[StateT, EventT], StateT],
        initial: StateT,
        *,
        on_move: Callable[[StateT], None] | None = None,
    ) -> None:
        """`on_move` is called with the state after each event, even if it is the same."""
        self.name: str = name
        self._on_move = on_move
        self.state: StateT = initial
        self._table = table

    def can(self, event: EventT) -> bool:
        """Return whether the current state has a transition for `event`."""
        return (self.state, event) in self._table

    def fire(self, event: EventT) -> StateT:
        """Move by `event` and return the new state.

        Raises: InvalidTransition: the table has no such transition.
        """
        target = self._table.get((self.state, event))
        if target is None:
            raise InvalidTransition(f"{self.name}: no transition from {self.state.name} by {event.name}")
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: %s --%s--> %s", self.name, self.state.name, event.name, target.name)
        self.state = target
        if self._on_move is not None:
            self._on_move(target)
        return target

    def __repr__(self) -> str:
        return f"<Machine {self.name} {self.state.name}>"


def mermaid(table: Mapping[tuple[StateT, EventT], StateT], initial: StateT) -> str:
    """Return the table as a mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {initial.name}"]
    lines += [f"    {source.name} --> {target.name}: {event.name}" for (source, event), target in table.items()]
    return "\n".join(lines) + "\n"
