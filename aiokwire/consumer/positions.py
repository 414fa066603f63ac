"""The state of each assigned partition, without I/O.

`PartitionState` has parts that only their own methods assign: `Position`, `LogEnds`, `FetchAttempt`
and `ReadSource`. Callers (docs/architecture.md) run on the consumer's loop, between two awaits. The
states are those of Kafka's Java client (`SubscriptionState.FetchStates`).

    INITIALIZING --RESET--> AWAIT_RESET --POSITION--> FETCHING <--> AWAIT_VALIDATION

In a group partitions start at the committed offset, again after a transaction of unknown outcome.
"""

from __future__ import annotations

import enum
import math
from collections import deque
from collections.abc import Iterable
from typing import Final

from aiokwire.backoff import Backoff
from aiokwire.clock import wall_ms
from aiokwire.consumer._iterate import Chunk
from aiokwire.consumer.metrics import TopicCounts
from aiokwire.consumer.reset_policy import ResetTarget
from aiokwire.errors import KafkaError
from aiokwire.machine import Machine
from aiokwire.types import OffsetAndMetadata, OffsetReset, TopicPartition

UNKNOWN: Final = -1
NEVER: Final = (1 << 63) - 1  # after all offsets
SHUN_SECONDS: Final = 30.0  # how long a partition is read from its leader after its replica refused it


class FetchState(enum.Enum):
    """The states of a partition: its next step towards fetching."""

    INITIALIZING = enum.auto()  # the group's committed offset, if there is a group
    AWAIT_RESET = enum.auto()  # the lookup of an offset by `reset_to`
    AWAIT_VALIDATION = enum.auto()  # the new leader, to confirm that its log contains the position (KIP-320)
    FETCHING = enum.auto()  # records: it has a position


class FetchEvent(enum.Enum):
    """The events of a partition."""

    POSITION = enum.auto()  # a position was set by a seek or found by a lookup
    RESET = enum.auto()  # the position must be looked up
    FORGET = enum.auto()  # the committed offset must be fetched again
    NEW_LEADER = enum.auto()  # a later leader epoch than that of the position
    VALIDATED = enum.auto()  # the new leader's log contains the position


TRANSITIONS: Final = {
    (FetchState.INITIALIZING, FetchEvent.POSITION): FetchState.FETCHING,
    (FetchState.INITIALIZING, FetchEvent.RESET): FetchState.AWAIT_RESET,
    **{(state, FetchEvent.FORGET): FetchState.INITIALIZING for state in FetchState},
    (FetchState.AWAIT_RESET, FetchEvent.POSITION): FetchState.FETCHING,
    (FetchState.AWAIT_RESET, FetchEvent.RESET): FetchState.AWAIT_RESET,
    (FetchState.FETCHING, FetchEvent.POSITION): FetchState.FETCHING,
    (FetchState.FETCHING, FetchEvent.RESET): FetchState.AWAIT_RESET,
    (FetchState.FETCHING, FetchEvent.NEW_LEADER): FetchState.AWAIT_VALIDATION,
    (FetchState.AWAIT_VALIDATION, FetchEvent.NEW_LEADER): FetchState.AWAIT_VALIDATION,
    (FetchState.AWAIT_VALIDATION, FetchEvent.POSITION): FetchState.FETCHING,
    (FetchState.AWAIT_VALIDATION, FetchEvent.RESET): FetchState.AWAIT_RESET,
    (FetchState.AWAIT_VALIDATION, FetchEvent.VALIDATED): FetchState.FETCHING,
}


class Position:
    """The delivered and the fetched offset, and their state machine, which only this class fires.

    Everything before `offset` was delivered, everything before `fetch_offset` was fetched.
    """

    __slots__ = (
        "began",
        "fallback",
        "fetch_epoch",
        "fetch_offset",
        "machine",
        "offset",
        "offset_epoch",
        "reset_from",
        "reset_reason",
        "reset_to",
    )

    def __init__(self, tp: TopicPartition) -> None:
        self.machine: Machine[FetchState, FetchEvent] = Machine(str(tp), TRANSITIONS, FetchState.INITIALIZING)
        self.offset: int = UNKNOWN  # while chunks are held, the first of them has the position
        self.offset_epoch: int = UNKNOWN  # leader epoch of the last record before `offset`
        self.began: OffsetAndMetadata | None = None  # the first position since it was unknown
        self.fetch_offset: int = UNKNOWN
        self.fetch_epoch: int = UNKNOWN  # leader epoch of the last batch before `fetch_offset`
        # A lookup in AWAIT_RESET.
        self.reset_to: ResetTarget = OffsetReset.NONE
        self.reset_reason: str = ""
        self.reset_from: int | None = None  # the position before it
        self.fallback: OffsetAndMetadata | None = None  # in INITIALIZING: the start if nothing was committed

    def move_to(self, offset: int, leader_epoch: int, *, is_drained: bool) -> None:
        """Fetch from `offset` on. With `is_drained` (no chunk held) it is the position, too."""
        self.machine.fire(FetchEvent.POSITION)
        if is_drained:
            if self.offset == UNKNOWN:
                self.began = OffsetAndMetadata(offset, "", leader_epoch)
            self.offset_epoch = leader_epoch
        self.offset = self.fetch_offset = offset
        self.fetch_epoch = leader_epoch
        self.fallback = None
        self.reset_from = None

    def request_reset(self, target: ResetTarget, reason: str) -> None:
        """Wait for a lookup of `target`."""
        self.machine.fire(FetchEvent.RESET)
        self.reset_to = target
        self.reset_reason = reason
        if self.fetch_offset != UNKNOWN:
            self.reset_from = self.fetch_offset

    def request_committed(self, fallback: OffsetAndMetadata | None) -> None:
        """Wait for the committed offset; without one, `fallback` is used."""
        self.machine.fire(FetchEvent.FORGET)
        self.forget()
        self.fallback = fallback

    def replaces(self, fetch_offset: int) -> None:
        """Keep the fetch offset of a deleted topic of the same name, to report the reset."""
        self.reset_from = fetch_offset

    def require_validation(self) -> None:
        """Stop fetching until the new leader has confirmed the position (KIP-320)."""
        self.machine.fire(FetchEvent.NEW_LEADER)

    def validated(self) -> None:
        """The new leader has confirmed the position: resume fetching."""
        self.machine.fire(FetchEvent.VALIDATED)

    def forget(self) -> None:
        """Make the position unknown, for example before a seek to an end that must be looked up."""
        self.offset = self.fetch_offset = UNKNOWN
        self.began = None

    def fetched(self, end: int, leader_epoch: int) -> None:
        """All before `end` was fetched, the last batch under `leader_epoch` (negative: unknown)."""
        self.fetch_offset = end
        if leader_epoch >= 0:
            self.fetch_epoch = leader_epoch

    def fetch_again_from(self, offset: int) -> None:
        """Chunks from `offset` on were dropped."""
        self.fetch_offset = offset

    def advance(self, offset: int, leader_epoch: int | None = None) -> None:
        """All before `offset` is delivered or not for readers; `leader_epoch`: last record's."""
        self.offset = offset
        if leader_epoch is not None:
            self.offset_epoch = leader_epoch


class LogEnds:
    """Offsets of a log in the last fetch response. They outlive a seek: they belong to the log."""

    __slots__ = ("end_offset", "fetched_at", "high_watermark", "last_stable_offset", "log_start_offset", "reported_end")

    def __init__(self) -> None:
        self.high_watermark: int = UNKNOWN
        self.last_stable_offset: int = UNKNOWN
        self.log_start_offset: int = UNKNOWN
        self.end_offset: int = UNKNOWN  # the end for this isolation level: one of the first two
        self.reported_end: int = UNKNOWN  # the last end that was reported as reached
        self.fetched_at: int = UNKNOWN  # the wall clock, in milliseconds

    def apply(self, high_watermark: int, last_stable_offset: int, log_start_offset: int, *, is_committed: bool) -> None:
        """Take offsets from a response; `is_committed`: readers stop at the last stable offset."""
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.end_offset = last_stable_offset if is_committed else high_watermark
        self.fetched_at = wall_ms()

    def mark_reported(self) -> None:
        """The end was reported as reached; it is reported again only after a seek."""
        self.reported_end = self.end_offset

    def forget_reported(self) -> None:
        self.reported_end = UNKNOWN


class FetchAttempt:
    """The requests for a partition: fetches and lookups, and their retries."""

    __slots__ = ("backoff", "generation", "in_flight", "last_error", "limit", "retry_at", "served")

    def __init__(self) -> None:
        self.generation: int = 0  # increases when the position is moved: earlier requests are stale then
        self.in_flight: bool = False  # a fetch or lookup of this generation
        self.retry_at: float = 0.0  # not before this time on the loop's clock
        self.backoff: Backoff | None = None  # of retries; None after a success
        self.last_error: str = ""  # the cause of the last retry
        self.limit: int = 0  # bytes for one fetch if more than the configured limit is needed (old brokers)
        self.served: int = 0  # when it last returned data: the partition that has waited longest is fetched first

    def start(self) -> None:
        """A request of this generation was sent."""
        self.in_flight = True

    def end(self) -> None:
        """Its response has arrived, or it has failed."""
        self.in_flight = False

    def interrupt(self) -> None:
        """Make requests in flight stale: their responses no longer fit the position."""
        self.generation += 1
        self.in_flight = False

    def renew(self) -> None:
        """Start again at a new position."""
        self.interrupt()
        self.retry_at = 0.0
        self.limit = 0

    def succeed(self) -> None:
        self.backoff = None

    def retry_after(self, backoff: Backoff, reason: str, now: float) -> float:
        """Schedule a retry and return its delay. `backoff` is kept until a request succeeds."""
        self.backoff = backoff
        self.last_error = reason
        delay = backoff.next()
        self.retry_at = now + delay
        return delay

    def postpone(self, until: float) -> None:
        """Send nothing before `until` on the loop's clock."""
        self.retry_at = until

    def set_limit(self, limit: int) -> None:
        """Fetch up to `limit` bytes next time; 0: as configured."""
        self.limit = limit

    def mark_served(self, turn: int) -> None:
        self.served = turn


class ReadSource:
    """The node that serves a partition: its leader, or a replica that it prefers (KIP-392).

    Only the leader is authoritative: a partition that a replica refuses is fetched from the leader,
    and only the leader's response may lead to a reset. For some time after a refusal the leader
    does not receive the client's rack, because it would name the same replica.
    """

    __slots__ = ("leader", "leader_epoch", "replica", "replica_until", "shun_until")

    def __init__(self) -> None:
        self.leader: int | None = None  # by the metadata
        self.leader_epoch: int = UNKNOWN  # of that leader; the position was validated under it
        self.replica: int | None = None
        self.replica_until: float = 0.0  # on the loop's clock, as `shun_until`
        self.shun_until: float = 0.0  # no replica before this time

    @property
    def node_id(self) -> int | None:
        """The node to fetch from."""
        return self.leader if self.replica is None else self.replica

    def follow_leader(self, leader: int | None) -> None:
        """The leader has changed. The new one may prefer another replica."""
        self.leader = leader
        self.replica = None

    def follow_epoch(self, leader_epoch: int) -> None:
        self.leader_epoch = leader_epoch

    def forget_leader(self) -> None:
        """The partition is no longer assigned."""
        self.leader = None

    def can_prefer(self, node_id: int, now: float) -> bool:
        """Return whether a preferred replica is not the current one, and replicas may be used."""
        return self.shun_until <= now and node_id not in (self.replica, self.leader)

    def prefer(self, node_id: int, until: float) -> None:
        """Fetch from a replica until then, on the loop's clock."""
        self.replica = node_id
        self.replica_until = until

    def end_preference(self) -> None:
        """Fetch from the leader, which may name another replica."""
        self.replica = None

    def shun_replicas(self, until: float) -> None:
        """The replica refused the partition or is unreachable: fetch from the leader until then."""
        self.replica = None
        self.shun_until = until


class PartitionState:
    """One assigned partition. Created by `Subscription`."""

    __slots__ = (
        "attempt",
        "buffered",
        "chunks",
        "counts",
        "cursor",
        "ends",
        "error",
        "held_back",
        "lost",
        "paused",
        "sample_at",
        "source",
        "topic_id",
        "tp",
    )

    def __init__(self, tp: TopicPartition, topic_id: bytes = b"", counts: TopicCounts | None = None) -> None:
        self.tp: TopicPartition = tp
        self.counts: TopicCounts = TopicCounts() if counts is None else counts  # of its topic
        self.topic_id: bytes = topic_id  # a recreated topic has another id: the position has no meaning there
        self.cursor: Position = Position(tp)
        self.ends: LogEnds = LogEnds()
        self.attempt: FetchAttempt = FetchAttempt()
        self.source: ReadSource = ReadSource()
        self.chunks: deque[Chunk] = deque()  # fetched, not delivered; changed by `FetchBuffer`
        self.buffered: int = 0  # bytes of `chunks`; assigned by `FetchBuffer`
        self.sample_at: int = NEVER  # the end of the fetch whose delivery is measured; assigned by `FetchBuffer`
        self.paused: bool = False  # by the application
        self.held_back: bool = False  # by the group: must not be fetched yet, or no longer
        self.lost: bool = False  # the cluster has no such partition; the reader has the error, or the group revokes it
        self.error: KafkaError | None = None  # why it cannot be read; raised at the next await of a reader

    @property
    def state(self) -> FetchState:
        return self.cursor.machine.state

    @property
    def position(self) -> int | None:
        """The offset of the next record to deliver; None while it is unknown."""
        if self.chunks:
            return self.chunks[0].position
        offset = self.cursor.offset
        return None if offset == UNKNOWN else offset

    @property
    def committable(self) -> OffsetAndMetadata | None:
        """The position to commit: with the leader epoch of the record before it, if known."""
        cursor = self.cursor
        if not self.chunks:
            return None if cursor.offset == UNKNOWN else OffsetAndMetadata(cursor.offset, "", cursor.offset_epoch)
        first = self.chunks[0]
        leader_epoch = first.batch.leader_epoch if first.position > first.start else cursor.offset_epoch
        return OffsetAndMetadata(first.position, "", leader_epoch)

    @property
    def has_backlog(self) -> bool:
        """Whether the next fetch is likely to return data at once."""
        return self.ends.end_offset == UNKNOWN or self.cursor.fetch_offset < self.ends.end_offset

    @property
    def is_fetchable(self) -> bool:
        """Whether a fetch may be sent for it, memory and time aside."""
        return (
            self.cursor.machine.state is FetchState.FETCHING
            and not self.paused
            and not self.held_back
            and self.error is None
        )

    @property
    def lag(self) -> int | None:
        """Offsets from position to the end that a reader can reach; None if either is unknown."""
        position = self.position
        if position is None or self.ends.end_offset == UNKNOWN:
            return None
        return max(0, self.ends.end_offset - position)

    # --- position -----------------------------------------------------------------------------------------------------

    def move_to(self, offset: int, leader_epoch: int = UNKNOWN) -> None:
        """Fetch from `offset` on after a seek or lookup. Without chunks it is the position, too."""
        self.cursor.move_to(offset, leader_epoch, is_drained=not self.chunks)
        self._renew()

    def request_reset(self, target: ResetTarget, reason: str) -> None:
        """Look up the next position; chunks that are held are delivered before it."""
        self.cursor.request_reset(target, reason)
        self._renew()

    def request_committed(self, fallback: OffsetAndMetadata | None) -> None:
        """Continue at the group's committed offset, or at `fallback` without one."""
        self.cursor.request_committed(fallback)
        self._renew()

    def needs_validation(self, leader_epoch: int) -> bool:
        """Return whether a leader of `leader_epoch` must validate the position (KIP-320)."""
        return (
            self.cursor.fetch_epoch != UNKNOWN
            and leader_epoch > self.source.leader_epoch
            and self.state in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)
        )

    def _renew(self) -> None:
        self.attempt.renew()
        self.ends.forget_reported()
        self.error = None

    # --- flags --------------------------------------------------------------------------------------------------------

    def follow_topic(self, topic_id: bytes) -> None:
        """The id of the topic is known now."""
        self.topic_id = topic_id

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def hold_back(self) -> None:
        """The group is revoking it, or the rebalance listener has not finished."""
        self.held_back = True

    def release(self) -> None:
        self.held_back = False

    def set_lost(self, lost: bool) -> None:
        """Record whether the cluster has lost the partition."""
        self.lost = lost

    def fail(self, error: KafkaError) -> None:
        """Stop until a reader has received the error."""
        self.error = error

    def clear_error(self) -> None:
        self.error = None

    def __repr__(self) -> str:
        paused = ", paused" if self.paused else ""
        return f"<PartitionState {self.tp} {self.state.name} at {self.position}{paused}>"


def expire_replicas(states: Iterable[PartitionState], now: float) -> tuple[bool, float]:
    """End preferences that have expired, so that the leader chooses again.

    Returns whether there were any, and when the next one expires.
    """
    is_changed = False
    due = math.inf
    for state in states:
        source = state.source
        if source.replica is None:
            continue
        if source.replica_until <= now:
            source.end_preference()
            state.attempt.interrupt()
            is_changed = True
        else:
            due = min(due, source.replica_until)
    return is_changed, due


def rack_for(states: Iterable[PartitionState], rack: str, now: float) -> str:
    """Return the rack for a fetch of these partitions; empty while one of them shuns replicas."""
    return "" if not rack or any(state.source.shun_until > now for state in states) else rack
