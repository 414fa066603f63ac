"""The next step of a member that uses the consumer protocol: pure functions. The only module that
interprets the error codes of ConsumerGroupHeartbeat and of such members' commits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from aiokwire.error_codes import ErrorCode
from aiokwire.group.consumer_protocol.requests import Part, Parts
from aiokwire.group.state_table import MemberEvent
from aiokwire.types import TopicPartition

_GONE: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: MemberEvent.LOST,
    ErrorCode.FENCED_MEMBER_EPOCH: MemberEvent.LOST,
    ErrorCode.FENCED_INSTANCE_ID: MemberEvent.FENCED,
}
_ON_JOIN: Final = {
    **_GONE,
    ErrorCode.UNSUPPORTED_VERSION: MemberEvent.UNSERVED,
    ErrorCode.UNRELEASED_INSTANCE_ID: MemberEvent.RETRY,
}
_ON_HEARTBEAT: Final = {
    **_GONE,
    ErrorCode.GROUP_ID_NOT_FOUND: MemberEvent.LOST,  # the group was empty for long and deleted
}
# The events that may be signalled to the driver, the most severe first; the last one does not end the epoch.
SEVERITY: Final = (
    MemberEvent.FENCED,
    MemberEvent.REFUSED,
    MemberEvent.LOST,
    MemberEvent.EXPIRED,
    MemberEvent.ASSIGNMENT_CHANGED,
)


def on_join_error(code: int) -> MemberEvent:
    """Return the event after a refused join. A group that is not found uses the other protocol."""
    known = ErrorCode.of(code)
    return _ON_JOIN.get(known, MemberEvent.RETRY if known.retriable else MemberEvent.REFUSED)


def on_heartbeat_error(code: int) -> MemberEvent | None:
    """Return the event that a refused heartbeat leads to; None: a retry may succeed."""
    known = ErrorCode.of(code)
    return _ON_HEARTBEAT.get(known, None if known.retriable else MemberEvent.REFUSED)


def on_commit_error(code: int) -> MemberEvent | None:
    """Return the event that a refused commit leads to; None: the membership is not affected."""
    return _GONE.get(ErrorCode.of(code))


class Plan(NamedTuple):
    """The changes from the owned partitions to the coordinator's assignment."""

    revoke: frozenset[TopicPartition]
    add: frozenset[TopicPartition]


def plan_reconciliation(owned: Collection[TopicPartition], target: Parts, names: Mapping[bytes, str]) -> Plan:
    """Return the partitions to revoke and to add, as far as the names of their topics are known."""
    before, after = frozenset(owned), frozenset(_by_name(target, names).values())
    return Plan(before - after, after - before)


def held_of(target: Parts, names: Mapping[bytes, str], owned: Collection[TopicPartition]) -> Parts:
    """Return the part of the coordinator's assignment that is in force."""
    return frozenset(part for part, tp in _by_name(target, names).items() if tp in owned)


def _by_name(target: Parts, names: Mapping[bytes, str]) -> dict[Part, TopicPartition]:
    """Return the partitions of the topics whose names are known."""
    return {part: TopicPartition(names[part.topic_id], part.number) for part in target if part.topic_id in names}
