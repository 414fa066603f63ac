"""Periodically checks every partition for progress, reports the stalled ones, and triggers a metadata refresh.

Nothing on the way of a record notes the time for it: a position that moved between two checks is progress.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Final

import anyio
import anyio.lowlevel

from aiokwire.consumer.events import ConsumerEvent, Events, PartitionResumed, PartitionStalled
from aiokwire.consumer.fetcher import Fetcher
from aiokwire.consumer.health import (
    ConsumerHealth,
    PartitionHealth,
    Reason,
    Seen,
    Source,
    group_health,
    look_again,
    reason_of,
)
from aiokwire.consumer.parts import ConsumerParts
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.rebalance_handler import RebalanceHandler
from aiokwire.types import TopicPartition

logger = logging.getLogger(__name__)

# The time between two looks (seconds): a tenth of what a stall takes to be one, within these.
SHORTEST_LOOK: Final = 0.1
LONGEST_LOOK: Final = 3.0
# Partitions that are checked before the loop gets a turn: some milliseconds.
IN_ONE_TURN: Final = 256


class StallMonitor:
    """Watches one consumer."""

    def __init__(
        self, parts: ConsumerParts, rebalance_handler: RebalanceHandler | None, events: Events[ConsumerEvent]
    ) -> None:
        self._client = parts.client
        self._config = parts.config
        self._subscription = parts.subscription
        self._reader = parts.reader
        self._fetcher = parts.fetcher
        self._updater = parts.updater
        self._rebalance_handler = rebalance_handler
        self._events = events
        self._stalled_after = parts.config.stalled_after_ms / 1000
        self._seen: dict[PartitionState, Seen] = {}

    async def run(self) -> None:
        """Until cancelled: the consumer has ended then, and so have its events."""
        pause = min(max(self._stalled_after / 10, SHORTEST_LOOK), LONGEST_LOOK)
        try:
            while True:
                await anyio.sleep(pause)
                await self._look_around()
        finally:
            self._events.close()

    def health(self) -> ConsumerHealth:
        """As it is now."""
        now = anyio.current_time()
        rebalance_handler = self._rebalance_handler
        group = status = None
        if rebalance_handler is not None:
            status = rebalance_handler.status
            group = group_health(status, rebalance_handler.metadata, self._config.group_id or "", now)
        since = None if status is None else status.blocked_until
        return ConsumerHealth(
            partitions=self._health_of_all(),
            group=group,
            is_awaited=self._reader.buffer.is_awaited,
            memory_in_use=self._fetcher.in_use,
            blocked=None if status is None else status.blocked,
            blocked_ago=None if since is None else now - since,
            ended=self._reader.ended,
        )

    # --- looking ------------------------------------------------------------------------------------------------------

    def _health_of_all(self) -> dict[TopicPartition, PartitionHealth]:
        now = anyio.current_time()
        sources = _Sources(self._fetcher)
        stalled: list[PartitionStalled] = []
        found = {state.tp: self._look_at(state, now, sources, stalled) for state in self._subscription.states.values()}
        self._on_stalls(stalled)
        return found

    async def _look_around(self) -> None:
        """Look at every partition, with turns for the loop in between."""
        stalled: list[PartitionStalled] = []
        states = list(self._subscription.states.values())
        for start in range(0, len(states), IN_ONE_TURN):
            now = anyio.current_time()
            sources = _Sources(self._fetcher)
            for state in states[start : start + IN_ONE_TURN]:
                if self._subscription.states.get(state.tp) is state:
                    self._look_at(state, now, sources, stalled)
            await anyio.lowlevel.checkpoint()
        self._on_stalls(stalled)
        if len(self._seen) > len(self._subscription.states):
            assigned = set(self._subscription.states.values())
            self._seen = {state: seen for state, seen in self._seen.items() if state in assigned}

    def _look_at(
        self, state: PartitionState, now: float, sources: _Sources, stalled: list[PartitionStalled]
    ) -> PartitionHealth:
        """Note how a partition is; one that has just been found to be stalled is added to `stalled`."""
        before = self._seen.get(state)
        reason, detail = reason_of(state, sources.of(state), now)
        position = state.position
        seen = look_again(before, position, reason, now)
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
        if before is not None and before.told and not health.stalled:
            logger.info("%s resumed", state.tp)
            self._events.publish(PartitionResumed(state.tp, now - before.fine_at))
        if health.stalled and not seen.told:
            seen = dataclasses.replace(seen, told=True)
            stalled.append(PartitionStalled(state.tp, now - seen.fine_at, reason, detail, position, health.lag))
        self._seen[state] = seen
        return health

    def _on_stalls(self, stalled: list[PartitionStalled]) -> None:
        """Log them, one line for each reason, and have everything looked up again that may have been missed."""
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
        self._client.metadata.request_update(f"{stalled[0].partition} makes no progress")
        self._updater.regroup()
        for event in stalled:
            self._events.publish(event)


class _Sources:
    """What bears on the next fetch from each node, looked up once for all its partitions."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._known: dict[int | None, Source] = {}

    def of(self, state: PartitionState) -> Source:
        node_id = state.source.node_id
        source = self._known.get(node_id)
        if source is None:
            source = self._known[node_id] = self._fetcher.source_of(state)
        return source
