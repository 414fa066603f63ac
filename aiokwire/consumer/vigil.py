"""The task that sees whether partitions go on: it looks now and then, says why one does not, and stirs it.

Nothing on the way of a record notes the time for it; what moved between two looks has gone on.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Final

import anyio

from aiokwire.cluster import Client
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.coordination import Coordination
from aiokwire.consumer.events import Events, PartitionResumed, PartitionStalled
from aiokwire.consumer.fetcher import Fetcher
from aiokwire.consumer.health import ConsumerHealth, PartitionHealth, Seen, group_health, look_again, reason_of
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.reader import Reader
from aiokwire.consumer.subscription import Subscription
from aiokwire.consumer.upkeep import Upkeep
from aiokwire.types import TopicPartition

logger = logging.getLogger(__name__)

# The time between two looks (seconds): a tenth of what a stall takes to be one, within these.
SHORTEST_LOOK: Final = 0.1
LONGEST_LOOK: Final = 3.0


class Vigil:
    """Watches one consumer."""

    def __init__(
        self,
        client: Client,
        config: ConsumerConfig,
        subscription: Subscription,
        reader: Reader,
        fetcher: Fetcher,
        upkeep: Upkeep,
        coordination: Coordination | None,
        events: Events,
    ) -> None:
        self._client = client
        self._config = config
        self._subscription = subscription
        self._reader = reader
        self._fetcher = fetcher
        self._upkeep = upkeep
        self._coordination = coordination
        self._events = events
        self._stalled_after = config.stalled_after_ms / 1000
        self._seen: dict[PartitionState, Seen] = {}

    async def run(self) -> None:
        """Until cancelled: the consumer has ended then, and so have its events."""
        pause = min(max(self._stalled_after / 10, SHORTEST_LOOK), LONGEST_LOOK)
        try:
            while True:
                await anyio.sleep(pause)
                self._look()
        finally:
            self._events.close()

    def health(self) -> ConsumerHealth:
        """As it is now."""
        now = anyio.current_time()
        coordination = self._coordination
        group = status = None
        if coordination is not None:
            status = coordination.status
            group = group_health(status, coordination.metadata, self._config.group_id or "", now)
        since = None if status is None else status.blocked_until
        return ConsumerHealth(
            partitions=self._look(),
            group=group,
            is_awaited=self._reader.buffer.is_awaited,
            memory_in_use=self._fetcher.in_use,
            blocked=None if status is None else status.blocked,
            blocked_ago=None if since is None else now - since,
            ended=self._reader.ended,
        )

    # --- looking ------------------------------------------------------------------------------------------------------

    def _look(self) -> dict[TopicPartition, PartitionHealth]:
        now = anyio.current_time()
        seen, self._seen = self._seen, {}
        found: dict[TopicPartition, PartitionHealth] = {}
        for state in self._subscription.states.values():
            found[state.tp] = self._look_at(state, seen.get(state), now)
        return found

    def _look_at(self, state: PartitionState, before: Seen | None, now: float) -> PartitionHealth:
        reason, detail = reason_of(state, self._fetcher.source_of(state), now)
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
            logger.info("%s goes on", state.tp)
            self._events.publish(PartitionResumed(state.tp, now - before.fine_at))
        if health.stalled and not seen.told:
            seen = dataclasses.replace(seen, told=True)
            self._on_stall(health, now - seen.fine_at)
        self._seen[state] = seen
        return health

    def _on_stall(self, health: PartitionHealth, seconds: float) -> None:
        """Say so, once, and have everything looked up anew that may have been missed."""
        logger.warning("no progress for %.0f s: %s", seconds, health)
        self._client.metadata.request_update(f"{health.partition} makes no progress")
        self._upkeep.regroup()
        self._events.publish(
            PartitionStalled(health.partition, seconds, health.reason, health.detail, health.position, health.lag)
        )
