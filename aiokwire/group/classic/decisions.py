"""The next step of a member of a classic group: pure functions. The only module that interprets the
error codes of JoinGroup, SyncGroup, Heartbeat and of members' commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from aiokwire.cluster import Cluster
from aiokwire.error_codes import ErrorCode
from aiokwire.group.state_table import MemberEvent
from aiokwire.types import TopicPartition

# Codes after which the next coordinator loads the group from the log.
RELOADED: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
# The events that may be signalled to the driver, the most severe first; the last one does not end the generation.
SEVERITY: Final = (MemberEvent.FENCED, MemberEvent.LOST, MemberEvent.EXPIRED, MemberEvent.REBALANCE)
# What a commit during a join is refused with once all others have joined: it may succeed in the next generation.
GENERATION_ENDED: Final = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS})

_GENERATION_GONE: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: MemberEvent.LOST,
    ErrorCode.ILLEGAL_GENERATION: MemberEvent.LOST,
    ErrorCode.FENCED_INSTANCE_ID: MemberEvent.FENCED,
}
_ON_JOIN: Final = {
    **_GENERATION_GONE,
    ErrorCode.MEMBER_ID_REQUIRED: MemberEvent.RETRY,  # with the member id of the response
    ErrorCode.REBALANCE_IN_PROGRESS: MemberEvent.RETRY,
}
# Of SyncGroup, heartbeats and commits.
_ON_SYNC: Final = {**_GENERATION_GONE, ErrorCode.REBALANCE_IN_PROGRESS: MemberEvent.REBALANCE}


def on_join_error(code: int) -> MemberEvent:
    """Return the event that a refused JoinGroup leads to."""
    return _by(_ON_JOIN, code)


def on_sync_error(code: int) -> MemberEvent:
    """Return the event that a refused SyncGroup leads to."""
    return _by(_ON_SYNC, code)


def on_heartbeat_error(code: int) -> MemberEvent | None:
    """Return the event that the response to a heartbeat leads to; None: nothing. A heartbeat never
    fails the member: the next join meets a lasting error again, and reports it."""
    known = ErrorCode.of(code)
    if known is ErrorCode.NONE or known.retriable:
        return None
    return _ON_SYNC.get(known, MemberEvent.REBALANCE)


def on_commit_error(code: int) -> MemberEvent | None:
    """Return the event that a refused commit leads to; None: the membership is not affected."""
    return _ON_SYNC.get(ErrorCode.of(code))


def _by(table: Mapping[ErrorCode, MemberEvent], code: int) -> MemberEvent:
    known = ErrorCode.of(code)
    return table.get(known, MemberEvent.RETRY if known.retriable else MemberEvent.REFUSED)


# --- partitions -------------------------------------------------------------------------------------------------------


def plan_revocation(
    owned: Collection[TopicPartition], topics: Collection[str], *, cooperative: bool
) -> frozenset[TopicPartition]:
    """Return the partitions to revoke before a join."""
    return frozenset(tp for tp in owned if not cooperative or tp.topic not in topics)


class Reconciliation(NamedTuple):
    """The changes from the owned partitions to the assigned ones."""

    revoke: frozenset[TopicPartition]
    add: frozenset[TopicPartition]
    rejoin: bool  # so that the revoked partitions can be assigned (KIP-429)


def plan_reconciliation(
    owned: Collection[TopicPartition], assigned: Collection[TopicPartition], *, cooperative: bool
) -> Reconciliation:
    """Return the partitions to revoke and to add."""
    before, after = frozenset(owned), frozenset(assigned)
    gone = before - after
    return Reconciliation(gone, after - before, cooperative and bool(gone))


def partition_counts(cluster: Cluster, topics: Iterable[str]) -> dict[str, int]:
    """Return the partition count of each topic; unknown topics are left out."""
    counts = {name: cluster.topics.get(name) for name in topics}
    return {name: len(topic.partitions) for name, topic in counts.items() if topic is not None and topic.partitions}
