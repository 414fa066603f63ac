"""What a member of a classic group does next: plain functions of what it knows. The one place where the codes of
JoinGroup, SyncGroup, Heartbeat and of members' commits get their meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from aiokwire.cluster import Cluster
from aiokwire.error_codes import ErrorCode
from aiokwire.group.classic.states import ClassicProtocolEvent
from aiokwire.types import TopicPartition

# Codes after which the coordinator has to be looked up again.
MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
# Codes after which the member id means nothing any more.
FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID})
# Codes that say that the group is read from the log, by whoever coordinates it next.
RELOADED: Final = MOVED | {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}

_GENERATION_GONE: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: ClassicProtocolEvent.LOST,
    ErrorCode.ILLEGAL_GENERATION: ClassicProtocolEvent.LOST,
    ErrorCode.FENCED_INSTANCE_ID: ClassicProtocolEvent.FENCED,
}
_ON_JOIN: Final = {
    **_GENERATION_GONE,
    ErrorCode.MEMBER_ID_REQUIRED: ClassicProtocolEvent.RETRY,  # with the id that came along
    ErrorCode.REBALANCE_IN_PROGRESS: ClassicProtocolEvent.RETRY,
}
_ON_SYNC: Final = {**_GENERATION_GONE, ErrorCode.REBALANCE_IN_PROGRESS: ClassicProtocolEvent.REBALANCE}
_ON_HEARTBEAT: Final = _ON_SYNC


def on_join_error(code: int) -> ClassicProtocolEvent:
    """What a refused JoinGroup leads to."""
    return _by(_ON_JOIN, code)


def on_sync_error(code: int) -> ClassicProtocolEvent:
    """What a refused SyncGroup leads to."""
    return _by(_ON_SYNC, code)


def on_heartbeat_error(code: int) -> ClassicProtocolEvent | None:
    """What a heartbeat's answer leads to; None: go on beating. A heartbeat is never the place to fail at: what lasts is
    met again, and told, by the join."""
    known = ErrorCode.of(code)
    if known is ErrorCode.NONE or known.retriable:
        return None
    return _ON_HEARTBEAT.get(known, ClassicProtocolEvent.REBALANCE)


def on_commit_error(code: int) -> ClassicProtocolEvent | None:
    """What a refused commit says of the membership; None: nothing."""
    return _ON_SYNC.get(ErrorCode.of(code))


def _by(table: Mapping[ErrorCode, ClassicProtocolEvent], code: int) -> ClassicProtocolEvent:
    known = ErrorCode.of(code)
    return table.get(known, ClassicProtocolEvent.RETRY if known.retriable else ClassicProtocolEvent.REFUSED)


class Signals:
    """What others noticed and the driver has not handled yet: of several events, the most severe counts."""

    _ORDER: Final = (
        ClassicProtocolEvent.FENCED,
        ClassicProtocolEvent.LOST,
        ClassicProtocolEvent.EXPIRED,
        ClassicProtocolEvent.REBALANCE,
    )

    def __init__(self) -> None:
        self._pending: set[ClassicProtocolEvent] = set()

    def add(self, event: ClassicProtocolEvent) -> None:
        if event not in self._ORDER:
            raise ValueError(f"{event} is not for others to signal")
        self._pending.add(event)

    @property
    def most_severe(self) -> ClassicProtocolEvent | None:
        return next((event for event in self._ORDER if event in self._pending), None)

    @property
    def terminal(self) -> ClassicProtocolEvent | None:
        """The most_severe, if it ends the generation."""
        event = self.most_severe
        return None if event is ClassicProtocolEvent.REBALANCE else event

    def clear(self) -> None:
        """A generation ended or a new one begins: what was noticed of the old one means nothing now."""
        self._pending.clear()


# --- topics -----------------------------------------------------------------------------------------------------------


def metadata_refresh_interval(topics: int) -> float:
    """How long to wait (seconds) before it is asked again whether topics and partitions were added: the answer names
    `topics`, which a broker with thousands of them should not have to do all the time."""
    return min(10.0, max(1.0, topics / 100))


# --- partitions -------------------------------------------------------------------------------------------------------


def plan_revocation(
    owned: Collection[TopicPartition], topics: Collection[str], *, cooperative: bool
) -> frozenset[TopicPartition]:
    """What has to be given up before a join."""
    return frozenset(tp for tp in owned if not cooperative or tp.topic not in topics)


class Reconciliation(NamedTuple):
    """From what is owned to what was assigned."""

    revoke: frozenset[TopicPartition]
    add: frozenset[TopicPartition]
    rejoin: bool  # so that what was given up can be assigned (KIP-429)


def plan_reconciliation(
    owned: Collection[TopicPartition], assigned: Collection[TopicPartition], *, cooperative: bool
) -> Reconciliation:
    """What to give up and what to take up."""
    before, after = frozenset(owned), frozenset(assigned)
    gone = before - after
    return Reconciliation(gone, after - before, cooperative and bool(gone))


def partition_counts(cluster: Cluster, topics: Iterable[str]) -> dict[str, int]:
    """How many partitions each topic has; topics that are not known are left out."""
    counts = {name: cluster.topics.get(name) for name in topics}
    return {name: len(topic.partitions) for name, topic in counts.items() if topic is not None and topic.partitions}
