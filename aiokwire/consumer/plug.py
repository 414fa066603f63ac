"""The consumer's side of `Hooks`: calls the user's methods, and keeps their faults away from the records."""

from __future__ import annotations

import logging

from aiokwire.consumer.positions import UNKNOWN, PartitionState
from aiokwire.hooks import Hooks

logger = logging.getLogger("aiokwire.consumer")


class Plug:
    """What the consumer's parts tell. A hook that nobody overrides costs nothing."""

    def __init__(self, hooks: Hooks | None) -> None:
        self._hooks = hooks if hooks is not None else Hooks()
        self.wants_resets = type(self._hooks).on_reset is not Hooks.on_reset
        self.wants_ends = type(self._hooks).on_partition_end is not Hooks.on_partition_end

    def reset(self, state: PartitionState, before: int | None, after: int, reason: str) -> None:
        """A position was set by a policy."""
        if not self.wants_resets:
            return
        try:
            self._hooks.on_reset(*state.tp, before, after, reason)
        except Exception:
            self._complain("on_reset")

    def progress(self, state: PartitionState) -> None:
        """A partition's position or its end moved: tell when the one has come to the other."""
        position, end = state.position, state.end_offset
        if not self.wants_ends or position is None or end == UNKNOWN or position < end or state.told_end == end:
            return
        state.told_end = end
        try:
            self._hooks.on_partition_end(*state.tp, end)
        except Exception:
            self._complain("on_partition_end")

    def _complain(self, name: str) -> None:
        logger.exception("hook %s of %r raised", name, self._hooks)
