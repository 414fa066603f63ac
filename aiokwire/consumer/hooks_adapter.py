"""Calls the consumer's hooks and publishes its events."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from aiokwire.consumer._iterate import Chunk
from aiokwire.consumer.events import ConsumerEvent, PartitionEnd, PositionReset
from aiokwire.consumer.positions import UNKNOWN, PartitionState
from aiokwire.events import Events, Throttled
from aiokwire.hooks import HookCaller, Hooks
from aiokwire.types import OffsetAndMetadata, TopicPartition

R = TypeVar("R")


class ConsumerHooks(HookCaller):
    """Reports to hooks and event streams. Default hooks and events without a stream cost nothing.

    Owned by `Consumer`; called on its loop, between two awaits.
    """

    def __init__(self, hooks: Hooks | None, events: Events[ConsumerEvent] | None = None) -> None:
        super().__init__(hooks, logging.getLogger("aiokwire.consumer"))
        self.events: Events[ConsumerEvent] = Events[ConsumerEvent]() if events is None else events
        self.wants_resets: bool = self.is_overridden("on_reset")
        self.wants_ends: bool = self.is_overridden("on_partition_end")
        self.reports_ends: bool = self.wants_ends  # whether callers must call `progress`
        self.wants_batches: bool = self.is_overridden("on_batch_read")
        self.wants_reads: bool = self.is_overridden("on_read")
        self._wants_loops = self.is_overridden("on_iterate")
        self._wants_commits = self.is_overridden("around_commit")
        self._throttles: dict[int, float] = {}  # by node: the deadline that was published last

    def report_ends(self) -> None:
        """Report ends from now on: a stream wants `PartitionEnd` events."""
        self.reports_ends = True

    def reset(self, state: PartitionState, before: int | None, after: int, reason: str) -> None:
        """Report that a policy set a position."""
        if before is not None:
            state.counts.reset()
        if self.events.wanted:
            self.events.publish(PositionReset(state.tp, before, after, reason))
        if self.wants_resets:
            self._call(self._hooks.on_reset, *state.tp, before, after, reason)

    def progress(self, state: PartitionState) -> None:
        """Report a partition at its end. Called when position or end moved, if `reports_ends`."""
        if not self.wants_ends and not self.events.wanted:
            return
        position, ends = state.position, state.ends
        end = ends.end_offset
        if position is None or end == UNKNOWN or position < end or ends.reported_end == end:
            return
        ends.mark_reported()
        if self.events.wanted:
            self.events.publish(PartitionEnd(state.tp, end))
        if self.wants_ends:
            self._call(self._hooks.on_partition_end, *state.tp, end)

    def batch_read(self, chunk: Chunk) -> None:
        """Report that all of a batch, or of a part of one, was delivered."""
        state: PartitionState = chunk.partition
        self._call(self._hooks.on_batch_read, *state.tp, chunk.start, chunk.count, chunk.size)

    def read(self, records: Sequence[Any], elapsed: float) -> None:
        """Report records that a call returns, `elapsed` seconds after it began."""
        self._call(self._hooks.on_read, records, elapsed)

    def iterated(self, records: AsyncIterator[R]) -> AsyncIterator[R]:
        """Return the iterator for a loop that begins."""
        if not self._wants_loops:
            return records
        try:
            return self._hooks.on_iterate(records)
        except Exception:
            self._logger.exception("hook on_iterate of %r raised", self._hooks)
            return records

    def committing(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, is_automatic: bool
    ) -> AbstractContextManager[object]:
        """Return the context manager to enter around a commit."""
        if not self._wants_commits:
            return nullcontext()
        return self._around(self._hooks.around_commit, group_id, offsets, is_automatic)

    def throttled(self, node_id: int, until: float, now: float) -> None:
        """Report a throttled broker: once per node and deadline, although both its lanes see it."""
        if self.events.wanted and self._throttles.get(node_id, 0.0) < until:
            self._throttles[node_id] = until
            self.events.publish(Throttled(node_id, until - now))
