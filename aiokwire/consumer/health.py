"""A consumer's health: a snapshot, and why partitions make no progress. Plain values and functions.

`StallMonitor` checks partitions periodically and keeps its observations; decisions are made here.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from aiokwire.cluster import Cluster
from aiokwire.consumer.positions import FetchState, PartitionState
from aiokwire.errors import KafkaError
from aiokwire.group import ClassicProtocolState, ConsumerProtocolState, MemberStatus
from aiokwire.types import GroupMetadata, TopicPartition
from aiokwire.watchdog import BlockedLoop


class Reason(enum.Enum):
    """The cause of a partition's wait; the values are the text of messages."""

    FETCHING = "its next fetch"
    AT_END = "records: it is at its end"
    NOT_READ = "the application to ask for the records that are held"
    PAUSED = "the end of its pause"
    HELD_BACK = "its group: it is being revoked, or the rebalance listener runs"
    ERROR = "the application to read an error"
    GONE = "the partition, which the cluster does not have"
    NO_LEADER = "a leader"
    THROTTLED = "the broker, which throttles this client"
    UNREACHABLE = "the broker, which cannot be reached"
    UNANSWERED = "the broker, which does not respond"
    RETRYING = "its next retry"
    LOOKING_UP = "the lookup of its position"
    NO_MEMORY = "memory: other partitions hold all of fetch_memory"


# A partition may wait for these without a limit; it is not stalled.
HARMLESS: Final = frozenset({Reason.AT_END, Reason.NOT_READ, Reason.PAUSED, Reason.HELD_BACK, Reason.ERROR})


class Source(NamedTuple):
    """The node that a partition is fetched from, and its state. Times are on the loop's clock."""

    last_error: str = ""  # why the last fetch failed; empty if it succeeded
    throttled_until: float = 0.0
    asked_at: float | None = None  # when the oldest fetch in flight was sent
    response_timeout: float = 10.0  # a fetch that has no response after this many seconds counts as unanswered
    has_room: bool = True  # in fetch_memory


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionHealth:
    """One assigned partition."""

    partition: TopicPartition
    position: int | None
    """The offset of the next record to deliver; None while it is being looked up."""
    lag: int | None
    """Offsets from the position to the end that the last fetch reported."""
    state: FetchState
    reason: Reason
    """The cause of its wait, if it waits."""
    detail: str
    idle: float
    """Seconds since the position moved, to within the few seconds between two checks."""
    stalled: bool
    """No progress for `stalled_after_ms`, although it should progress."""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.partition} at {self.position}, lag {self.lag}, waits for {self.reason.value}{detail}"


@dataclasses.dataclass(frozen=True, slots=True)
class GroupHealth:
    """A member and its group. Times are seconds before now; None: not yet."""

    group_id: str
    state: str
    """A state of the machines in docs/machines.md; "NOT_MEMBER" if partitions were assigned by hand."""
    member_id: str
    generation: int
    """The generation or member epoch; -1 without one."""
    coordinator: int | None
    """The node that responded last as the coordinator; None while none does."""
    last_error: str
    """Why the coordinator is unknown or not reached."""
    heartbeat: float | None
    """The last response to a heartbeat."""
    rebalancing: float | None
    """The start of the current rebalance; None without one."""
    rebalanced: float | None
    """The end of the last rebalance."""
    rebalance_took: float | None
    """Its duration in seconds."""
    members: int | None = None
    """The members of the last generation; only the leader of a classic group knows their number."""


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
    """The last block of the event loop; only members of groups watch for it."""
    blocked_ago: float | None
    """Seconds since then."""
    ended: KafkaError | None
    """Why no more records are delivered: the consumer was closed, or failed."""

    @property
    def stalled(self) -> list[PartitionHealth]:
        """The stalled partitions; `str()` of each names its reason."""
        return [health for health in self.partitions.values() if health.stalled]

    @property
    def ok(self) -> bool:
        """Whether it works: not ended, no partition stalled, and its coordinator available."""
        with_coordinator = self.group is None or self.group.coordinator is not None or not self.group.last_error
        return self.ended is None and with_coordinator and not self.stalled

    @property
    def has_ended(self) -> bool:
        """Whether only a new consumer delivers records again."""
        return self.ended is not None

    @property
    def reasons(self) -> list[str]:
        """Why it is not ok, one sentence each."""
        found = [] if self.ended is None else [f"the consumer has ended: {self.ended}"]
        found += [f"no progress for {each.idle:.0f} s: {each}" for each in self.stalled]
        group = self.group
        if group is not None and group.coordinator is None and group.last_error:
            found.append(f"the coordinator of group {group.group_id!r} is not reached: {group.last_error}")
        return found


def reason_of(state: PartitionState, source: Source, now: float) -> tuple[Reason, str]:
    """Return what a partition waits for, and the details."""
    here = _reason_here(state)
    if here is not None:
        return here
    if state.source.leader is None:
        return Reason.NO_LEADER, ""
    if source.throttled_until > now:
        return Reason.THROTTLED, f"node {state.source.node_id}, for {source.throttled_until - now:.1f} s more"
    if source.last_error:
        return Reason.UNREACHABLE, source.last_error
    if state.attempt.backoff is not None:
        return Reason.RETRYING, state.attempt.last_error
    if state.state is not FetchState.FETCHING:
        return Reason.LOOKING_UP, state.state.name
    return _reason_of_fetch(state, source, now)


def _reason_here(state: PartitionState) -> tuple[Reason, str] | None:
    """Return a reason on this side, independent of any broker."""
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
    if state.attempt.in_flight and source.asked_at is not None and now - source.asked_at > source.response_timeout:
        return Reason.UNANSWERED, f"no response from node {state.source.node_id} for {now - source.asked_at:.1f} s"
    if state.lag == 0:
        return Reason.AT_END, ""
    if not state.attempt.in_flight and not source.has_room:
        return Reason.NO_MEMORY, ""
    return Reason.FETCHING, "" if state.attempt.in_flight else "none is in flight"


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """The last check of a partition. Times are on the loop's clock."""

    position: int | None
    moved_at: float  # when the position was first seen here
    fine_at: float  # when it last moved, or had no reason to
    is_reported: bool = False  # as stalled, by an event
    is_logged: bool = False
    outage_at: float = 0.0  # when its node was last in an outage, which the log has


def check_again(seen: Seen | None, position: int | None, reason: Reason, now: float) -> Seen:
    """Return a partition's record after another check."""
    if seen is None or seen.position != position:
        return Seen(position, now, now)
    if reason in HARMLESS:
        return Seen(position, seen.moved_at, now)
    return seen


def group_health(status: MemberStatus, metadata: GroupMetadata | None, group_id: str, now: float) -> GroupHealth:
    """Return a member's health now."""
    return GroupHealth(
        group_id=group_id,
        state="NOT_MEMBER" if status.state is None else status.state.name,
        member_id="" if metadata is None else metadata.member_id,
        generation=-1 if metadata is None else metadata.generation,
        coordinator=status.coordinator,
        last_error=status.last_error,
        heartbeat=_ago(status.heartbeat_at, now),
        rebalancing=_ago(status.rebalancing_since, now),
        rebalanced=_ago(status.rebalanced_at, now),
        rebalance_took=status.rebalance_took,
        members=status.members,
    )


def _ago(at: float | None, now: float) -> float | None:
    return None if at is None else max(0.0, now - at)


def why_unassigned(topics: Collection[str], cluster: Cluster, group: GroupHealth | None, *, is_subscribed: bool) -> str:
    """Explain why a consumer has no partitions yet. `group` is None without a group;
    `is_subscribed`: to topics, or to a pattern."""
    if not is_subscribed:
        return "nothing is subscribed to or assigned: call subscribe or assign"
    if group is not None and group.coordinator is None:
        return f"the coordinator of group {group.group_id!r} was not found: {group.last_error or 'no response yet'}"
    missing = sorted(name for name in topics if name not in cluster.topics or not cluster.topics[name].partitions)
    if missing:
        return f"these topics do not exist: {', '.join(map(repr, missing))}"
    if group is None:
        return "the partitions of the topics are not known yet"
    if not topics:
        return f"group {group.group_id!r}: no topic matches the pattern"
    if group.state in (ClassicProtocolState.STABLE.name, ConsumerProtocolState.STABLE.name):
        return f"group {group.group_id!r} assigned no partition to this member: it has as many members as partitions"
    since = "" if group.rebalancing is None else f" for {group.rebalancing:.1f} s"
    members = "" if group.members is None else f", {group.members} members in the last generation"
    return f"group {group.group_id!r} has been rebalancing{since} (state {group.state}{members})"
