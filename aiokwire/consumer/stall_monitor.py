"""Periodically checks partitions for progress, reports stalled ones, triggers a metadata refresh.

Delivering a record does not read the clock: a position that moved between two checks is progress.
"""

from __future__ import annotations

import dataclasses
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel

from aiokwire.clock import background_pause, loop_time
from aiokwire.consumer.events import ConsumerEvent, PartitionResumed, PartitionStalled
from aiokwire.consumer.health import (
    ConsumerHealth,
    PartitionHealth,
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
from aiokwire.log_fields import FieldLogger, get_logger

logger: FieldLogger = get_logger(__name__)

# Bounds of the time between two checks (seconds), which is a tenth of `stalled_after_ms`.
SHORTEST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 3.0
# Partitions that are checked before the loop gets a turn: some milliseconds.
IN_ONE_TURN: Final = 256
# A partition that stalled or resumed; whether to publish the event, and whether to log it.
Change: TypeAlias = tuple[PartitionStalled | PartitionResumed, bool, bool]


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
        pause = background_pause(min(max(self._stalled_after / 10, SHORTEST_PAUSE), LONGEST_PAUSE))
        try:
            while True:
                await anyio.sleep(pause)
                await self._check_all()
        finally:
            self._events.close()

    def health(self) -> ConsumerHealth:
        """Return the consumer's health now."""
        now = loop_time()
        parts, rebalance_handler = self._parts, self._rebalance_handler
        group = status = None
        if rebalance_handler is not None:
            status = rebalance_handler.status
            group = group_health(status, rebalance_handler.metadata, parts.config.group_id or "", now)
        since = None if status is None else status.blocked_until
        sources: dict[int | None, Source] = {}
        changes: list[Change] = []
        partitions = {state.tp: self._check(state, now, sources, changes) for state in self._states.values()}
        self._report(changes)
        return ConsumerHealth(
            partitions=partitions,
            group=group,
            is_awaited=parts.reader.buffer.is_awaited,
            memory_in_use=parts.fetcher.in_use,
            blocked=None if status is None else status.blocked,
            blocked_ago=None if since is None else now - since,
            ended=parts.reader.ended,
        )

    @property
    def stalled(self) -> int:
        """The number of partitions that are reported as stalled; from any thread."""
        return sum(seen.is_reported for state, seen in list(self._seen.items()) if self._states.get(state.tp) is state)

    # --- checking -----------------------------------------------------------------------------------------------------

    async def _check_all(self) -> None:
        """Check every partition, with turns for the loop in between."""
        changes: list[Change] = []
        reader = self._parts.reader
        reader.processed.progressed_at(loop_time(), waiting=reader.buffer.is_awaited)
        states = list(self._states.values())
        for start in range(0, len(states), IN_ONE_TURN):
            now = loop_time()
            sources: dict[int | None, Source] = {}
            for state in states[start : start + IN_ONE_TURN]:
                if self._states.get(state.tp) is state:
                    self._check(state, now, sources, changes)
            await anyio.lowlevel.checkpoint()
        self._report(changes)
        if len(self._seen) > len(self._states):
            assigned = set(self._states.values())
            self._seen = {state: seen for state, seen in self._seen.items() if state in assigned}

    def _check(
        self, state: PartitionState, now: float, sources: dict[int | None, Source], changes: list[Change]
    ) -> PartitionHealth:
        """Add a partition's stall or resumption to `changes`. `sources` caches the node's state."""
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
        if self._parts.client.nodes.is_unreachable(node_id):
            seen = dataclasses.replace(seen, outage_at=now)
        if before is not None and before.is_reported and not health.stalled:
            changes.append((PartitionResumed(state.tp, now - before.fine_at), True, before.is_logged))
        if health.stalled and not seen.is_logged:
            log = now - max(seen.fine_at, seen.outage_at) >= self._stalled_after
            event = PartitionStalled(state.tp, now - seen.fine_at, reason, detail, position, health.lag)
            changes.append((event, not seen.is_reported, log))
            seen = dataclasses.replace(seen, is_reported=True, is_logged=log)
        self._seen[state] = seen
        return health

    def _report(self, changes: list[Change]) -> None:
        """Log changes, a line per reason; publish them; refresh metadata and lanes for stalls."""
        handler = self._rebalance_handler
        log = logger.bound(client_id=self._parts.config.client_id, group_id=self._parts.config.group_id)
        who = f"client {self._parts.config.client_id!r}" + ("" if handler is None else f", {handler.label}")
        alike: dict[str, list[PartitionStalled | PartitionResumed]] = {}
        for event in (event for event, _, is_logged in changes if is_logged):
            cause = f"{event.reason}{event.detail}" if isinstance(event, PartitionStalled) else ""
            alike.setdefault(cause, []).append(event)
        for first, *others in alike.values():
            more = f" and {len(others)} more partition(s)" if others else ""
            if isinstance(first, PartitionResumed):
                log.info("%s: %s%s resumed", who, first.partition, more)
                continue
            cause = first.reason.value + (f" ({first.detail})" if first.detail else "")
            text = "%s: no progress for %.0f s: %s at %s, lag %s, waits for %s%s"
            log.warning(
                text, who, first.seconds, first.partition, first.position, first.lag, cause, more and f",{more}"
            )
        if any(is_published and isinstance(event, PartitionStalled) for event, is_published, _ in changes):
            self._parts.client.metadata.request_update("partitions make no progress")
            self._parts.updater.regroup()
        for event, is_published, _ in changes:
            if is_published:
                self._events.publish(event)
