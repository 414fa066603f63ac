"""How a consumer is: a snapshot, and why a partition that does not go on does not. Plain values and functions.

`StallMonitor` looks at the partitions now and then and keeps what it saw; what it means is decided here.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Final, NamedTuple

from aiokwire.consumer.positions import FetchState, PartitionState
from aiokwire.errors import KafkaError
from aiokwire.group import MemberStatus
from aiokwire.types import GroupMetadata, TopicPartition
from aiokwire.watchdog import BlockedLoop


class Reason(enum.Enum):
    """What a partition waits for, the values for reading."""

    FETCHING = "its next fetch"
    AT_END = "records: it is at its end"
    NOT_READ = "the application to ask for the records that are held"
    PAUSED = "the end of its pause"
    HELD_BACK = "its group: it is being given up, or the listener is at work"
    ERROR = "the application to be told of an error"
    GONE = "the partition, which the cluster does not have"
    NO_LEADER = "a leader"
    THROTTLED = "the broker, which demanded silence"
    UNREACHABLE = "the broker, which cannot be reached"
    UNANSWERED = "the broker, which does not answer"
    RETRYING = "another attempt"
    LOOKING_UP = "its position to be looked up"
    NO_MEMORY = "memory: other partitions hold all of fetch_memory"


# Nothing is wrong with a partition that waits for these, however long.
HARMLESS: Final = frozenset({Reason.AT_END, Reason.NOT_READ, Reason.PAUSED, Reason.HELD_BACK, Reason.ERROR})


class Source(NamedTuple):
    """The node that a partition is fetched from, and what else bears on its next fetch. Times on the loop's clock."""

    trouble: str = ""  # why the last fetches failed; empty when the last one did not
    throttled_until: float = 0.0
    asked_at: float | None = None  # when the oldest fetch on its way was sent
    patience: float = 10.0  # a fetch is answered within this many seconds
    has_room: bool = True  # in fetch_memory


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionHealth:
    """One assigned partition."""

    partition: TopicPartition
    position: int | None
    """The offset of the next record to hand over; None while it is being looked up."""
    lag: int | None
    """Offsets to the end, as the last fetch told it."""
    state: FetchState
    reason: Reason
    """What it waits for, when it waits."""
    detail: str
    idle: float
    """Seconds since the position moved, as far as was noticed: it is looked at every few seconds."""
    stalled: bool
    """It should go on, and has not for `stalled_after_ms`."""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.partition} at {self.position}, lag {self.lag}, waits for {self.reason.value}{detail}"


@dataclasses.dataclass(frozen=True, slots=True)
class GroupHealth:
    """A member and its group. Times in seconds before now; None: not yet."""

    group_id: str
    state: str
    """By the names of the state machines in docs/machines.md; "NOT_MEMBER" with partitions assigned by hand."""
    member_id: str
    generation: int
    """Or epoch; -1 while it is in none."""
    coordinator: int | None
    """The node that answered last; None while none does."""
    trouble: str
    """Why none does."""
    heartbeat: float | None
    """The last one that was answered."""
    rebalancing: float | None
    """Since when a rebalance is going on; None when none is."""
    rebalanced: float | None
    """When the last one ended."""
    rebalance_took: float | None
    """How long that one took."""
    members: int | None = None
    """Of the last generation; known to the leader of a classic group alone."""


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerHealth:
    """A consumer at one moment."""

    partitions: Mapping[TopicPartition, PartitionHealth]
    group: GroupHealth | None
    """None without a `group_id`."""
    is_awaited: bool
    """Whether the application waits for records now."""
    memory_in_use: int
    blocked: BlockedLoop | None
    """The last time in which the event loop was blocked; only members of groups watch it."""
    blocked_ago: float | None
    """Seconds since then."""
    ended: KafkaError | None
    """Why nothing is handed over any more: it was closed, or failed."""

    @property
    def stalled(self) -> list[PartitionHealth]:
        """The partitions that should go on and do not; `str` of one says why."""
        return [each for each in self.partitions.values() if each.stalled]

    @property
    def ok(self) -> bool:
        """Whether it reads what it should, or could: not ended, nothing stalled, its coordinator there."""
        with_coordinator = self.group is None or self.group.coordinator is not None or not self.group.trouble
        return self.ended is None and with_coordinator and not self.stalled


def reason_of(state: PartitionState, source: Source, now: float) -> tuple[Reason, str]:
    """What a partition waits for, and the details."""
    here = _reason_here(state)
    if here is not None:
        return here
    if state.source.leader is None:
        return Reason.NO_LEADER, ""
    if source.throttled_until > now:
        return Reason.THROTTLED, f"node {state.source.node_id}, for {source.throttled_until - now:.1f} s more"
    if source.trouble:
        return Reason.UNREACHABLE, source.trouble
    if state.attempt.backoff is not None:
        return Reason.RETRYING, state.attempt.trouble
    if state.state is not FetchState.FETCHING:
        return Reason.LOOKING_UP, state.state.name
    return _reason_of_fetch(state, source, now)


def _reason_here(state: PartitionState) -> tuple[Reason, str] | None:
    """What no broker has to do with."""
    position = state.position
    if state.error is not None:
        return Reason.ERROR, str(state.error)
    if state.paused:
        return Reason.PAUSED, ""
    if state.lost:
        return Reason.GONE, ""
    if position is not None and position < state.cursor.fetch_offset and state.chunks:
        return Reason.NOT_READ, f"{state.buffered} bytes"
    if state.held_back:
        return Reason.HELD_BACK, ""
    return None


def _reason_of_fetch(state: PartitionState, source: Source, now: float) -> tuple[Reason, str]:
    if state.attempt.in_flight and source.asked_at is not None and now - source.asked_at > source.patience:
        return Reason.UNANSWERED, f"node {state.source.node_id} was asked {now - source.asked_at:.1f} s ago"
    if state.lag == 0:
        return Reason.AT_END, ""
    if not state.attempt.in_flight and not source.has_room:
        return Reason.NO_MEMORY, ""
    return Reason.FETCHING, "" if state.attempt.in_flight else "none is on its way"


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A partition as it was when it was looked at last. Times on the loop's clock."""

    position: int | None
    moved_at: float  # the position was another one before
    fine_at: float  # it moved, or had no reason to
    told: bool = False  # that it is stalled


def look_again(seen: Seen | None, position: int | None, reason: Reason, now: float) -> Seen:
    """What is known of a partition after another look."""
    if seen is None or seen.position != position:
        return Seen(position, now, now)
    if reason in HARMLESS:
        return Seen(position, seen.moved_at, now)
    return seen


def group_health(status: MemberStatus, metadata: GroupMetadata | None, group_id: str, now: float) -> GroupHealth:
    """What a status means now."""
    return GroupHealth(
        group_id=group_id,
        state="NOT_MEMBER" if status.state is None else status.state.name,
        member_id="" if metadata is None else metadata.member_id,
        generation=-1 if metadata is None else metadata.generation,
        coordinator=status.coordinator,
        trouble=status.last_error,
        heartbeat=_ago(status.heartbeat_at, now),
        rebalancing=_ago(status.rebalancing_since, now),
        rebalanced=_ago(status.rebalanced_at, now),
        rebalance_took=status.rebalance_took,
        members=status.members,
    )


def _ago(at: float | None, now: float) -> float | None:
    return None if at is None else max(0.0, now - at)
