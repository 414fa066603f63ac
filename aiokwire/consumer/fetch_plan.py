"""What to fetch next from one broker: a decision without I/O.

A broker answers the requests of one connection in order and keeps a fetch back until it has something, so a fetch that
waits for idle partitions would hold up a busy one that is asked for a moment later. Hence two lanes, each a connection
of its own: the main lane asks for whatever may be asked for and may wait long; the side lane takes what became
fetchable in the meantime, and never waits long. When a fetch leaves out a partition that is not paused, it waits only
briefly, so that the lanes come together again as soon as the load falls.

Memory: `fetch_memory` bounds what is held plus what is in flight. Every fetch reserves its `max_bytes` before it is
sent.
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
    """The connections of one broker that carry fetches; the values are the client's names of the lanes."""

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
        """The most that one fetch may reserve while `brokers` are fetched from, two fetches each."""
        return max(1, min(self.max_bytes, self.memory // (2 * max(1, brokers))))

    def enough(self, brokers: int, partitions: int) -> int:
        """With more bytes than this held, a partition is not asked for: it has work for one more response's time."""
        return min(self.partition_bytes, self.memory // (2 * max(1, brokers, partitions)))


class Asked(NamedTuple):
    """One partition of a fetch, as it was when the fetch was planned."""

    state: PartitionState
    generation: int
    offset: int
    leader_epoch: int
    limit: int

    @property
    def is_stale(self) -> bool:
        """Whether the position was moved since."""
        return self.generation != self.state.attempt.generation


@dataclasses.dataclass(frozen=True, slots=True)
class FetchPlan:
    """One fetch."""

    asked: Sequence[Asked]
    max_bytes: int
    max_wait_ms: int
    min_bytes: int

    @property
    def is_brief(self) -> bool:
        return self.max_wait_ms <= BRIEF_WAIT_MS


@dataclasses.dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in use, when a fetch is planned."""

    held: int  # responses with chunks that were not handed over
    reserved: int  # fetches in flight
    share: int  # the most for one fetch
    enough: int  # the most held by a partition that is asked for
    batch: int = 0  # the largest batch that came so far: brokers send one whole, whatever the limit

    def grant(self, limits: Limits) -> int:
        """The bytes that the next fetch may bring; 0 when it has to wait for room."""
        if not self.held and not self.reserved:
            return self.share  # nothing to wait for: even a budget that is too small makes progress
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
    """The next fetch of a lane, or None when there is nothing to ask for or no room.

    `states` are the partitions that this broker leads, `main` what is in flight on the main lane, `bounded` whether
    the broker keeps to a limit for the whole response (Fetch v3 and later).
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
    """What has nothing to bring is left to the main lane, unless that one is away for long."""
    return main is not None and (state.has_backlog or not main.is_brief)


def _served(state: PartitionState) -> int:
    return state.attempt.served


def _within(candidates: Sequence[PartitionState], grant: int, partition_bytes: int, bounded: bool) -> list[Asked]:
    asked: list[Asked] = []
    total = 0
    for state in candidates:
        # A limit that grew for one large record is not cut again: it would never come through. Where the whole response
        # has a limit, a partition's stays what it is, or a fetch session would have to be told all the time.
        attempt = state.attempt
        limit = attempt.limit or (partition_bytes if bounded else min(partition_bytes, grant))
        total += limit
        if asked and not bounded and total > grant:
            break
        asked.append(Asked(state, attempt.generation, state.cursor.fetch_offset, state.source.leader_epoch, limit))
    return asked


def next_retry(states: Iterable[PartitionState], now: float) -> float:
    """When the next partition may be asked for again, on the loop's clock; infinity when none waits for time."""
    attempts = (state.attempt for state in states if state.error is None)
    times = [attempt.retry_at for attempt in attempts if attempt.retry_at > now and not attempt.in_flight]
    return min(times, default=math.inf)
