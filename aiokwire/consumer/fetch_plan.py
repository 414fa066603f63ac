"""Decides what to fetch next from one broker, without I/O.

A broker processes a connection's requests in order and holds a fetch back until it has data, so a
fetch that waits for idle partitions would delay a busy one that becomes fetchable later. Hence two
lanes, each with its own connection: the main lane fetches every fetchable partition and may wait
long; the side lane fetches what became fetchable meanwhile, and never waits long. A fetch that
omits an unpaused partition waits only briefly, so that the lanes merge again when the load falls.

Memory: `fetch_memory` bounds the bytes held and in flight; fetches reserve `max_bytes` in advance.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.positions import PartitionState

BRIEF_WAIT_MS: Final = 50
SMALLEST_GRANT: Final = 64 * 1024  # a fetch for less than this costs more than it brings


class Lane(enum.Enum):
    """A broker's connections that carry fetches; the values are the client's names of the lanes."""

    MAIN = "fetch"
    SIDE = "fetch-1"


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of every fetch."""

    min_bytes: int
    max_wait_ms: int
    max_bytes: int
    partition_bytes: int
    memory: int

    @classmethod
    def of(cls, config: ConsumerConfig) -> Limits:
        return cls(
            min_bytes=config.fetch_min_bytes,
            max_wait_ms=round(config.fetch_max_wait_ms),
            max_bytes=config.fetch_max_bytes,
            partition_bytes=min(config.max_partition_fetch_bytes, config.fetch_max_bytes),
            memory=config.fetch_memory,
        )

    def share(self, brokers: int) -> int:
        """Return the bytes that one fetch may reserve while `brokers` serve two fetches each."""
        return max(1, min(self.max_bytes, self.memory // (2 * max(1, brokers))))

    def enough(self, brokers: int, partitions: int) -> int:
        """Return the held bytes at which fetching stops: enough until the next response."""
        return min(self.partition_bytes, self.memory // (2 * max(1, brokers, partitions)))


class Asked(NamedTuple):
    """One partition of a fetch, at the time when the fetch was planned."""

    state: PartitionState
    generation: int
    offset: int
    leader_epoch: int
    limit: int

    @property
    def is_stale(self) -> bool:
        """Whether the position has moved since."""
        return self.generation != self.state.attempt.generation


@dataclasses.dataclass(frozen=True, slots=True)
class FetchPlan:
    """One fetch."""

    asked: Sequence[Asked]
    max_bytes: int
    max_wait_ms: int
    min_bytes: int

    @property
    def max_wait(self) -> float:
        """`max_wait_ms` in seconds."""
        return self.max_wait_ms / 1000

    @property
    def is_brief(self) -> bool:
        return self.max_wait_ms <= BRIEF_WAIT_MS


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in use, when a fetch is planned."""

    held: int  # by responses with chunks that were not delivered
    reserved: int  # by fetches in flight
    share: int  # the most for one fetch
    enough: int  # the most held by a partition that is fetched
    batch: int = 0  # the largest batch so far: brokers return a first batch whole, whatever the limit

    def grant(self, limits: Limits) -> int:
        """Return the bytes that the next fetch may return; 0 if it must wait for room."""
        if not self.held and not self.reserved:
            return self.share  # no memory will be released: even a budget that is too small makes progress
        room = min(self.share, limits.memory - self.held - self.reserved)
        needed = min(self.share, max(self.batch, min(limits.partition_bytes, SMALLEST_GRANT)))
        return room if room >= needed else 0


def plan_fetch(
    states: Iterable[PartitionState],
    *,
    now: float,
    limits: Limits,
    memory: Memory,
    lane: Lane,
    main: FetchPlan | None,
    bounded: bool,
) -> FetchPlan | None:
    """Return the next fetch of a lane, or None without fetchable partitions or room.

    `states` are the partitions that this broker serves, `main` is the fetch in flight on the main
    lane, `bounded` whether the broker obeys a limit for the whole response (Fetch v3 and later).
    """
    candidates = []
    left_out = False
    for state in states:
        if not state.is_fetchable:
            continue
        attempt = state.attempt
        if attempt.in_flight or state.buffered > memory.enough:
            left_out = True
        elif attempt.retry_at > now:
            continue
        elif lane is Lane.MAIN or _suits_side_lane(state, main):
            candidates.append(state)
    grant = memory.grant(limits)
    if not candidates or not grant:
        return None
    candidates.sort(key=_served)
    asked = _within(candidates, grant, limits.partition_bytes, bounded)
    brief = left_out or lane is Lane.SIDE or len(asked) < len(candidates)
    return FetchPlan(
        asked=asked,
        max_bytes=max(grant, *(one.state.attempt.limit for one in asked))
        if bounded
        else sum(one.limit for one in asked),
        max_wait_ms=min(limits.max_wait_ms, BRIEF_WAIT_MS) if brief else limits.max_wait_ms,
        min_bytes=limits.min_bytes,
    )


def _suits_side_lane(state: PartitionState, main: FetchPlan | None) -> bool:
    """Return whether the side lane may fetch: there is data, or the main lane waits long."""
    return main is not None and (state.has_backlog or not main.is_brief)


def _served(state: PartitionState) -> int:
    return state.attempt.served


def _within(candidates: Sequence[PartitionState], grant: int, partition_bytes: int, bounded: bool) -> list[Asked]:
    asked: list[Asked] = []
    total = 0
    for state in candidates:
        # A limit that was raised for one large record is not reduced, or the record would never arrive. If the whole
        # response has a limit, a partition's limit stays constant: a fetch session transfers each change.
        attempt = state.attempt
        limit = attempt.limit or (partition_bytes if bounded else min(partition_bytes, grant))
        total += limit
        if asked and not bounded and total > grant:
            break
        asked.append(Asked(state, attempt.generation, state.cursor.fetch_offset, state.source.leader_epoch, limit))
    return asked


def next_retry(states: Iterable[PartitionState], now: float) -> float:
    """Return the loop time when the next retry is due; infinity if no partition waits for one."""
    attempts = (state.attempt for state in states if state.error is None)
    times = [attempt.retry_at for attempt in attempts if attempt.retry_at > now and not attempt.in_flight]
    return min(times, default=math.inf)
