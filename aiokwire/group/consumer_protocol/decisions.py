"""What a member that uses the consumer protocol does next: pure functions of what it knows. The only place that
interprets the error codes of ConsumerGroupHeartbeat and of such members' commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from aiokwire.error_codes import ErrorCode
from aiokwire.group.consumer_protocol.requests import Part, Parts
from aiokwire.group.consumer_protocol.states import ConsumerProtocolEvent
from aiokwire.types import TopicPartition

_GONE: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: ConsumerProtocolEvent.LOST,
    ErrorCode.FENCED_MEMBER_EPOCH: ConsumerProtocolEvent.LOST,
    ErrorCode.FENCED_INSTANCE_ID: ConsumerProtocolEvent.FENCED,
}
_ON_JOIN: Final = {
    **_GONE,
    ErrorCode.UNSUPPORTED_VERSION: ConsumerProtocolEvent.UNSERVED,
    ErrorCode.UNRELEASED_INSTANCE_ID: ConsumerProtocolEvent.RETRY,
}
_ON_HEARTBEAT: Final = {
    **_GONE,
    ErrorCode.GROUP_ID_NOT_FOUND: ConsumerProtocolEvent.LOST,  # it was empty for long and deleted
}
# What others may signal to the driver, the most severe first; the last one does not end the epoch.
SEVERITY: Final = (
    ConsumerProtocolEvent.FENCED,
    ConsumerProtocolEvent.REFUSED,
    ConsumerProtocolEvent.LOST,
    ConsumerProtocolEvent.EXPIRED,
    ConsumerProtocolEvent.ASSIGNMENT_CHANGED,
)


def on_join_error(code: int) -> ConsumerProtocolEvent:
    """What a refused join leads to. A group that is not found exists, and uses the other protocol."""
    known = ErrorCode.of(code)
    return _ON_JOIN.get(known, ConsumerProtocolEvent.RETRY if known.retriable else ConsumerProtocolEvent.REFUSED)


def on_heartbeat_error(code: int) -> ConsumerProtocolEvent | None:
    """What a refused heartbeat leads to; None: a retry may succeed."""
    known = ErrorCode.of(code)
    return _ON_HEARTBEAT.get(known, None if known.retriable else ConsumerProtocolEvent.REFUSED)


def on_commit_error(code: int) -> ConsumerProtocolEvent | None:
    """What a refused commit means for the membership; None: nothing."""
    return _GONE.get(ErrorCode.of(code))


class Plan(NamedTuple):
    """From what is owned to what the coordinator gave."""

    revoke: frozenset[TopicPartition]
    add: frozenset[TopicPartition]


def plan_reconciliation(owned: Collection[TopicPartition], target: Parts, names: Mapping[bytes, str]) -> Plan:
    """What to give up and what to take up; what has no name yet waits until it has one."""
    before, after = frozenset(owned), frozenset(named(target, names))
    return Plan(before - after, after - before)


def named(parts: Iterable[Part], names: Mapping[bytes, str]) -> list[TopicPartition]:
    """The partitions whose topics' names are known."""
    return [TopicPartition(names[part.topic_id], part.number) for part in parts if part.topic_id in names]


def held_of(target: Parts, names: Mapping[bytes, str], owned: Collection[TopicPartition]) -> Parts:
    """Of what the coordinator gave, what is in force."""
    mine = frozenset(owned)
    return frozenset(
        part for part in target if part.topic_id in names and TopicPartition(names[part.topic_id], part.number) in mine
    )
