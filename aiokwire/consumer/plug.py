"""What the consumer tells: to the user's `Hooks`, whose faults are kept away from the records, and to those who listen
to its events.
"""

from __future__ import annotations

import logging

from aiokwire.consumer._iterate import Chunk
from aiokwire.consumer.events import ConsumerEvent, Events, PartitionEnd, PositionReset, Throttled
from aiokwire.consumer.positions import UNKNOWN, PartitionState
from aiokwire.hooks import Hooks

logger = logging.getLogger("aiokwire.consumer")


class Plug:
    """What the consumer's parts tell. A hook that nobody overrides costs nothing, nor do events without a listener."""

    def __init__(self, hooks: Hooks | None, events: Events[ConsumerEvent] | None = None) -> None:
        self.events = Events[ConsumerEvent]() if events is None else events
        self._hooks = hooks if hooks is not None else Hooks()
        self.wants_resets = type(self._hooks).on_reset is not Hooks.on_reset
        self.wants_ends = type(self._hooks).on_partition_end is not Hooks.on_partition_end
        self.wants_batches = type(self._hooks).on_batch_read is not Hooks.on_batch_read
        self._throttles: dict[int, float] = {}  # until when, of those that were told

    def reset(self, state: PartitionState, before: int | None, after: int, reason: str) -> None:
        """A position was set by a policy."""
        if self.events.wanted:
            self.events.publish(PositionReset(state.tp, before, after, reason))
        if not self.wants_resets:
            return
        try:
            self._hooks.on_reset(*state.tp, before, after, reason)
        except Exception:
            self._complain("on_reset")

    def progress(self, state: PartitionState) -> None:
        """A partition's position or its end moved: tell when the one has come to the other."""
        if not self.wants_ends and not self.events.wanted:
            return
        position, end = state.position, state.end_offset
        if position is None or end == UNKNOWN or position < end or state.told_end == end:
            return
        state.told_end = end
        if self.events.wanted:
            self.events.publish(PartitionEnd(state.tp, end))
        if not self.wants_ends:
            return
        try:
            self._hooks.on_partition_end(*state.tp, end)
        except Exception:
            self._complain("on_partition_end")

    def batch_read(self, chunk: Chunk) -> None:
        """A batch, or part of one, was handed over as a whole."""
        state: PartitionState = chunk.partition
        try:
            self._hooks.on_batch_read(*state.tp, chunk.start, chunk.count, chunk.size)
        except Exception:
            self._complain("on_batch_read")

    def throttled(self, node_id: int, until: float, now: float) -> None:
        """A broker is not fetched from until then; once for each time, though each of its lanes says so."""
        if self.events.wanted and self._throttles.get(node_id, 0.0) < until:
            self._throttles[node_id] = until
            self.events.publish(Throttled(node_id, until - now))

    def _complain(self, name: str) -> None:
        logger.exception("hook %s of %r raised", name, self._hooks)
