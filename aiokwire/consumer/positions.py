"""Where a consumer stands in each of its partitions: a state machine per partition, without I/O.

`PartitionState` is written by the consumer's own calls (seek, pause, resume), by the fetcher (answers of brokers) and
by the buffer (hand-over), all on one event loop and never across an await. The states are those of Kafka's Java client
(`SubscriptionState.FetchStates`).

    INITIALIZING --RESET--> AWAIT_RESET --POSITION--> FETCHING <--> AWAIT_VALIDATION

With a group a partition begins, and after a transaction of unknown end begins again, by what the group has committed.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import Final

from aiokwire.backoff import Backoff
from aiokwire.consumer._iterate import Chunk
from aiokwire.consumer.reset_policy import ResetTarget
from aiokwire.errors import KafkaError
from aiokwire.machine import Machine
from aiokwire.types import OffsetAndMetadata, OffsetReset, TopicPartition

UNKNOWN: Final = -1


class FetchState(enum.Enum):
    """What a partition waits for."""

    INITIALIZING = enum.auto()  # where to begin is asked of the group, if there is one
    AWAIT_RESET = enum.auto()  # an offset has to be looked up by `reset_to`
    AWAIT_VALIDATION = enum.auto()  # the leader changed: is our position still in its log? (KIP-320)
    FETCHING = enum.auto()  # has a position


class FetchEvent(enum.Enum):
    """What moves a partition."""

    POSITION = enum.auto()  # a position was given (seek) or found (look-up)
    RESET = enum.auto()  # the position is to be looked up
    FORGET = enum.auto()  # where the group stands is to be asked again
    NEW_LEADER = enum.auto()  # a later leader epoch than the one that the position was read under
    VALIDATED = enum.auto()  # the new leader's log holds the position


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


class PartitionState:
    """One assigned partition."""

    __slots__ = (
        "_start",
        "_start_epoch",
        "backoff",
        "began",
        "buffered",
        "chunks",
        "end_offset",
        "epoch",
        "error",
        "fallback",
        "fetch_offset",
        "generation",
        "held_back",
        "high_watermark",
        "in_flight",
        "last_stable_offset",
        "leader",
        "leader_epoch",
        "limit",
        "log_start_offset",
        "lost",
        "machine",
        "paused",
        "replica",
        "replica_until",
        "reset_from",
        "reset_reason",
        "reset_to",
        "retry_at",
        "served",
        "shun_until",
        "told_end",
        "topic_id",
        "tp",
        "trouble",
    )

    def __init__(self, tp: TopicPartition, topic_id: bytes = b"") -> None:
        self.tp = tp
        self.topic_id = topic_id  # a topic made anew has another one: the position means nothing there
        self.machine: Machine[FetchState, FetchEvent] = Machine(str(tp), TRANSITIONS, FetchState.INITIALIZING)
        self.paused = False
        self.held_back = False  # by its group: not to be fetched yet, or not any more; written by `RebalanceHandler`
        self.generation = 0  # goes up when the position is moved: what was asked for before is stale then

        # Positions. Handed over up to `position`, fetched up to `fetch_offset`; the chunks lie in between.
        self._start = UNKNOWN  # the position while no chunk is held
        self._start_epoch = UNKNOWN  # leader epoch of what was handed over last before `_start`
        self.began: OffsetAndMetadata | None = None  # the first position since it was unknown
        self.fetch_offset = UNKNOWN
        self.epoch = UNKNOWN  # leader epoch of the last batch before `fetch_offset`
        self.chunks: deque[Chunk] = deque()
        self.buffered = 0  # bytes of `chunks`; written by the buffer

        # A look-up in AWAIT_RESET.
        self.reset_to: ResetTarget = OffsetReset.NONE
        self.reset_reason = ""
        self.reset_from: int | None = None  # the position before it
        self.fallback: OffsetAndMetadata | None = None  # in INITIALIZING: where to go on when nothing was committed

        # What the leader said last.
        self.lost = False  # the cluster has no such partition; the reader was told, or its group takes it away
        self.leader: int | None = None  # by the metadata; written by `PositionUpdater`
        self.leader_epoch = UNKNOWN  # of that leader; the position was validated under it
        self.high_watermark = UNKNOWN
        self.last_stable_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.told_end = UNKNOWN  # the last end that was told to have been reached
        self.end_offset = UNKNOWN  # the one of the two that bounds a reader of this isolation level

        # Who is fetched from, if not the leader: see `preferred_replica`. Times on the loop's clock.
        self.replica: int | None = None
        self.replica_until = 0.0
        self.shun_until = 0.0

        # Fetching: written by the fetcher.
        self.in_flight = False  # a fetch or a look-up of this generation is on its way
        self.retry_at = 0.0  # not before this time on the loop's clock
        self.backoff: Backoff | None = None  # of retries; None while all goes well
        self.trouble = ""  # why it is tried again, with a backoff
        self.served = 0  # when it last brought data: who waited longest is asked for first
        self.limit = 0  # bytes asked for in one fetch when more than the configured limit is needed (old brokers)

        self.error: KafkaError | None = None  # why it cannot go on; raised at the next await of a reader

    @property
    def state(self) -> FetchState:
        return self.machine.state

    @property
    def source(self) -> int | None:
        """The node to fetch from."""
        return self.leader if self.replica is None else self.replica

    @property
    def position(self) -> int | None:
        """The offset of the next record to hand over; None while that is unknown."""
        if self.chunks:
            return self.chunks[0].position
        return None if self._start == UNKNOWN else self._start

    @property
    def place(self) -> OffsetAndMetadata | None:
        """The position as it is committed: with the leader epoch of the record before it, where that is known."""
        if not self.chunks:
            return None if self._start == UNKNOWN else OffsetAndMetadata(self._start, "", self._start_epoch)
        first = self.chunks[0]
        epoch = first.batch.leader_epoch if first.position > first.start else self._start_epoch
        return OffsetAndMetadata(first.position, "", epoch)

    @property
    def has_backlog(self) -> bool:
        """Whether the next fetch is likely to bring something at once."""
        return self.end_offset == UNKNOWN or self.fetch_offset < self.end_offset

    def is_fetchable(self) -> bool:
        """Whether a fetch could be sent for it, memory and time aside."""
        state = self.machine.state
        return state is FetchState.FETCHING and not self.paused and not self.held_back and self.error is None

    def move_to(self, offset: int, epoch: int = UNKNOWN) -> None:
        """Go on fetching at `offset`: a seek, or a look-up's result. Without chunks it is the position, too."""
        self.machine.fire(FetchEvent.POSITION)
        self._renew()
        if self.position is None:
            self.began = OffsetAndMetadata(offset, "", epoch)
        self._start = self.fetch_offset = offset
        self.epoch = epoch
        if not self.chunks:
            self._start_epoch = epoch
        self.fallback = None
        self.reset_from = None

    def ask_for_reset(self, target: ResetTarget, reason: str) -> None:
        """Have the next position looked up; chunks that are held are handed over before it."""
        self.machine.fire(FetchEvent.RESET)
        self._renew()
        self.reset_to = target
        self.reset_reason = reason
        if self.fetch_offset != UNKNOWN:
            self.reset_from = self.fetch_offset

    def forget_position(self) -> None:
        """Say that the position is unknown, as after a seek to an end that has to be looked up."""
        self._start = self.fetch_offset = UNKNOWN
        self.began = None

    def ask_group(self, fallback: OffsetAndMetadata | None) -> None:
        """Have the position be where the group stands; where it has committed nothing, be `fallback`."""
        self.machine.fire(FetchEvent.FORGET)
        self._renew()
        self.forget_position()
        self.fallback = fallback

    def advance(self, offset: int, epoch: int | None = None) -> None:
        """Everything before `offset` was handed over, the last of it under `epoch`, or is not for the reader."""
        self._start = offset
        if epoch is not None:
            self._start_epoch = epoch

    def fail(self, error: KafkaError) -> None:
        """Stop here until a reader has been told."""
        self.error = error

    def interrupt(self) -> None:
        """Make stale what is in flight: it would not fit where the position is now."""
        self.generation += 1
        self.in_flight = False

    def _renew(self) -> None:
        self.interrupt()
        self.retry_at = 0.0
        self.limit = 0
        self.error = None
        self.told_end = UNKNOWN
        # What is known of the ends stays: it belongs to the log, not to the position.

    @property
    def lag(self) -> int | None:
        """Offsets between the position and the end that a reader can reach; None while one of them is unknown."""
        position = self.position
        if position is None or self.end_offset == UNKNOWN:
            return None
        return max(0, self.end_offset - position)

    def __repr__(self) -> str:
        paused = ", paused" if self.paused else ""
        return f"<PartitionState {self.tp} {self.state.name} at {self.position}{paused}>"


def needs_validation(state: PartitionState, leader_epoch: int) -> bool:
    """Whether a leader of `leader_epoch` must be asked if its log still holds the position (KIP-320)."""
    return (
        state.epoch != UNKNOWN
        and leader_epoch > state.leader_epoch
        and state.state in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)
    )
