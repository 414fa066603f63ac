"""Periodically checks every partition for progress, reports the stalled ones, and triggers a metadata refresh.

Delivering a record does not read the clock: a position that moved between two checks is progress.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Final

import anyio
import anyio.lowlevel

from aiokwire.consumer.events import ConsumerEvent, PartitionResumed, PartitionStalled
from aiokwire.consumer.health import (
    ConsumerHealth,
    PartitionHealth,
    Reason,
    Seen,
    Source,
    check_again,
    group_health,
    reason_of,
)
from aiokwire.consumer.parts import ConsumerParts
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.rebalance_handler import RebalanceHandler
from aiokwire.events import Events

logger = logging.getLogger(__name__)

# Bounds of the time between two checks (seconds), which is a tenth of `stalled_after_ms`.
SHORTEST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 3.0
# Partitions that are checked before the loop gets a turn: some milliseconds.
IN_ONE_TURN: Final = 256


class StallMonitor:
    """Watches one consumer."""

    def __init__(
        self, parts: ConsumerParts, rebalance_handler: RebalanceHandler | None, events: Events[ConsumerEvent]
    ) -> None:
        self._parts = parts
        self._states = parts.subscription.states
        self._rebalance_handler = rebalance_handler
        self._events = events
        self._stalled_after = parts.config.stalled_after
        self._seen: dict[PartitionState, Seen] = {}

    async def run(self) -> None:
        """Check periodically until cancelled, which ends the consumer and its events."""
        pause = min(max(self._stalled_after / 10, SHORTEST_PAUSE), LONGEST_PAUSE)
        try:
            while True:
                await anyio.sleep(pause)
                await self._check_all()
        finally:
            self._events.close()

    def health(self) -> ConsumerHealth:
        """Return the consumer's health now."""
        now = anyio.current_time()
        parts, rebalance_handler = self._parts, self._rebalance_handler
        group = status = None
        if rebalance_handler is not None:
            status = rebalance_handler.status
            group = group_health(status, rebalance_handler.metadata, parts.config.group_id or "", now)
        since = None if status is None else status.blocked_until
        sources: dict[int | None, Source] = {}
        stalled: list[PartitionStalled] = []
        partitions = {state.tp: self._check(state, now, sources, stalled) for state in self._states.values()}
        self._on_stalls(stalled)
        return ConsumerHealth(
            partitions=partitions,
            group=group,
            is_awaited=parts.reader.buffer.is_awaited,
            memory_in_use=parts.fetcher.in_use,
            blocked=None if status is None else status.blocked,
            blocked_ago=None if since is None else now - since,
            ended=parts.reader.ended,
        )

    # --- checking -----------------------------------------------------------------------------------------------------

    async def _check_all(self) -> None:
        """Check every partition, with turns for the loop in between."""
        stalled: list[PartitionStalled] = []
        states = list(self._states.values())
        for start in range(0, len(states), IN_ONE_TURN):
            now = anyio.current_time()
            sources: dict[int | None, Source] = {}
            for state in states[start : start + IN_ONE_TURN]:
                if self._states.get(state.tp) is state:
                    self._check(state, now, sources, stalled)
            await anyio.lowlevel.checkpoint()
        self._on_stalls(stalled)
        if len(self._seen) > len(self._states):
            assigned = set(self._states.values())
            self._seen = {state: seen for state, seen in self._seen.items() if state in assigned}

    def _check(
        self, state: PartitionState, now: float, sources: dict[int | None, Source], stalled: list[PartitionStalled]
    ) -> PartitionHealth:
        """Check a partition; append an event to `stalled` if it has just stalled. `sources` caches the node's state."""
        before = self._seen.get(state)
        node_id = state.source.node_id
        if node_id not in sources:
            sources[node_id] = self._parts.fetcher.source_of(state)
        reason, detail = reason_of(state, sources[node_id], now)
        position = state.position
        seen = check_again(before, position, reason, now)
        health = PartitionHealth(
            partition=state.tp,
            position=position,
            lag=state.lag,
            state=state.state,
            reason=reason,
            detail=detail,
            idle=now - seen.moved_at,
            stalled=now - seen.fine_at >= self._stalled_after,
        )
        if before is not None and before.is_reported and not health.stalled:
            logger.info("%s resumed", state.tp)
            self._events.publish(PartitionResumed(state.tp, now - before.fine_at))
        if health.stalled and not seen.is_reported:
            seen = dataclasses.replace(seen, is_reported=True)
            stalled.append(PartitionStalled(state.tp, now - seen.fine_at, reason, detail, position, health.lag))
        self._seen[state] = seen
        return health

    def _on_stalls(self, stalled: list[PartitionStalled]) -> None:
        """Log the stalls, one line for each reason, and refresh the metadata and the fetch lanes."""
        if not stalled:
            return
        by_reason: dict[tuple[Reason, str], list[PartitionStalled]] = {}
        for event in stalled:
            by_reason.setdefault((event.reason, event.detail), []).append(event)
        for alike in by_reason.values():
            first = alike[0]
            detail = f" ({first.detail})" if first.detail else ""
            more = f", and {len(alike) - 1} more partitions" if len(alike) > 1 else ""
            logger.warning(
                "no progress for %.0f s: %s at %s, lag %s, waits for %s%s%s",
                first.seconds,
                first.partition,
                first.position,
                first.lag,
                first.reason.value,
                detail,
                more,
            )
        self._parts.client.metadata.request_update(f"{stalled[0].partition} makes no progress")
        self._parts.updater.regroup()
        for event in stalled:
            self._events.publish(event)
