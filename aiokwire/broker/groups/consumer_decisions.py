"""ConsumerGroupHeartbeat, its result and checks, a member's next step, as pure functions (KIP-848).

The order of the checks is Kafka's (Java: GroupMetadataManager).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aiokwire.broker.groups.assignors import ASSIGNORS
from aiokwire.broker.groups.consumer_group import (
    JOINING,
    LEAVING,
    LEAVING_FOR_A_WHILE,
    NO_TIMEOUT,
    ConsumerGroup,
    ConsumerMember,
    Part,
    Parts,
)
from aiokwire.broker.groups.requests import Client, Committer, too_long
from aiokwire.broker.groups.states import ReconciliationState
from aiokwire.error_codes import ErrorCode

EPOCHS_IN_COMMITS_SINCE = 9  # of OffsetCommit and OffsetFetch
OWN_IDS_SINCE = 1  # the version in which members choose their ids (KIP-1082)


class Heartbeat(NamedTuple):
    """ConsumerGroupHeartbeat. None: unchanged since the last one."""

    group_id: str
    member_id: str
    epoch: int
    client: Client
    version: int = 1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Parts | None = None
    may_describe: Callable[[str], bool] | None = None  # the topics that a pattern may select; None: all

    @property
    def leaves(self) -> bool:
        return self.epoch in {LEAVING, LEAVING_FOR_A_WHILE}

    @property
    def is_full(self) -> bool:
        """Whether the heartbeat has all fields: then the response has all fields."""
        named = self.topics is not None or self.regex is not None
        return self.epoch == JOINING or (named and self.owned is not None and self.rebalance_timeout_ms != NO_TIMEOUT)


class HeartbeatResult(NamedTuple):
    """The result of a heartbeat; the assignment is None if it has not changed."""

    code: ErrorCode
    message: str | None = None
    member_id: str | None = None
    epoch: int = 0
    interval_ms: int = 0
    assignment: Parts | None = None


class Fault(NamedTuple):
    """The reason for rejecting a heartbeat."""

    code: ErrorCode
    message: str | None = None


def request_fault(heartbeat: Heartbeat) -> Fault | None:
    """Return the error of a heartbeat that does not depend on its group."""
    message = _shape_fault(heartbeat)
    if message is not None:
        return Fault(ErrorCode.INVALID_REQUEST, message)
    if heartbeat.assignor is not None and heartbeat.assignor not in ASSIGNORS:
        known = ", ".join(ASSIGNORS)
        return Fault(
            ErrorCode.UNSUPPORTED_ASSIGNOR, f"assignor {heartbeat.assignor!r} is not supported; there are: {known}"
        )
    return None


def _shape_fault(heartbeat: Heartbeat) -> str | None:
    if not heartbeat.group_id:
        return "GroupId can't be empty."
    if not heartbeat.member_id and (heartbeat.epoch != JOINING or heartbeat.version >= OWN_IDS_SINCE):
        return "MemberId can't be empty."
    names = (heartbeat.group_id, heartbeat.member_id, heartbeat.instance_id, heartbeat.rack_id, heartbeat.regex)
    if too_long(*names) or heartbeat.instance_id == "" or heartbeat.rack_id == "":
        return "A name is too long, or InstanceId or RackId are empty strings."
    if heartbeat.epoch < LEAVING_FOR_A_WHILE:
        return f"MemberEpoch {heartbeat.epoch} is invalid."
    if heartbeat.epoch == LEAVING_FOR_A_WHILE and heartbeat.instance_id is None:
        return "InstanceId can't be null when a static member leaves."
    if heartbeat.epoch != JOINING:
        return None
    if heartbeat.rebalance_timeout_ms == NO_TIMEOUT:
        return "RebalanceTimeoutMs must be provided in first request."
    if heartbeat.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if heartbeat.topics is None and heartbeat.regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be provided in first request."
    return None


def member_fault(group: ConsumerGroup, heartbeat: Heartbeat) -> Fault | None:
    """Return why the group rejects a heartbeat; a new member may join with epoch 0."""
    if heartbeat.instance_id is not None:
        return _static_fault(group, group.static.get(heartbeat.instance_id), heartbeat)
    member = group.members.get(heartbeat.member_id)
    if member is None:
        if heartbeat.epoch != JOINING:
            return Fault(ErrorCode.UNKNOWN_MEMBER_ID, f"member {heartbeat.member_id} is not in the group")
        return None
    return None if heartbeat.leaves else _epoch_fault(member, heartbeat)


def _static_fault(group: ConsumerGroup, owner: str | None, heartbeat: Heartbeat) -> Fault | None:
    if owner is None:
        if heartbeat.epoch != JOINING:
            return Fault(ErrorCode.UNKNOWN_MEMBER_ID, f"instance {heartbeat.instance_id} is not in the group")
        return None
    member = group.members[owner]
    if owner != heartbeat.member_id:
        if heartbeat.epoch != JOINING:
            return Fault(ErrorCode.FENCED_INSTANCE_ID, f"instance {heartbeat.instance_id} is member {owner}")
        if member.epoch != LEAVING_FOR_A_WHILE:
            return Fault(ErrorCode.UNRELEASED_INSTANCE_ID, f"instance {heartbeat.instance_id} is still member {owner}")
        return None
    return None if heartbeat.leaves else _epoch_fault(member, heartbeat)


def _epoch_fault(member: ConsumerMember, heartbeat: Heartbeat) -> Fault | None:
    if heartbeat.epoch in {JOINING, member.epoch}:
        return None
    # It missed the response that raised its epoch: its partitions must be among its assigned ones.
    missed = (
        heartbeat.epoch == member.previous_epoch
        and heartbeat.owned is not None
        and heartbeat.owned <= member.assigned.keys()
    )
    if heartbeat.epoch < member.epoch and missed:
        return None
    return Fault(
        ErrorCode.FENCED_MEMBER_EPOCH, f"member epoch {heartbeat.epoch} is not the current one, {member.epoch}: rejoin"
    )


def updated(member: ConsumerMember, heartbeat: Heartbeat) -> ConsumerMember:
    """Return the member with the description of a heartbeat."""
    changes: dict[str, Any] = {"client": heartbeat.client, "instance_id": heartbeat.instance_id or member.instance_id}
    if heartbeat.rack_id is not None:
        changes["rack_id"] = heartbeat.rack_id
    if heartbeat.rebalance_timeout_ms != NO_TIMEOUT:
        changes["rebalance_timeout_ms"] = heartbeat.rebalance_timeout_ms
    if heartbeat.topics is not None:
        changes["topics"] = tuple(sorted(set(heartbeat.topics)))
    if heartbeat.regex is not None:
        changes["regex"] = heartbeat.regex or None  # an empty one ends the subscription by pattern
    if heartbeat.assignor is not None:
        changes["assignor"] = heartbeat.assignor
    if all(getattr(member, name) == value for name, value in changes.items()):
        return member  # the usual case
    return dataclasses.replace(member, **changes)


def commit_fault(group: ConsumerGroup, by: Committer, parts: list[Part]) -> ErrorCode:
    """Return why the committer may not commit offsets of these partitions, or NONE."""
    if by.epoch < 0 and not by.member_id and (not group.members or by.transactional):
        return ErrorCode.NONE
    member = group.members.get(by.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if by.epoch == member.epoch:
        return ErrorCode.NONE
    if not by.transactional and by.version < EPOCHS_IN_COMMITS_SINCE:
        return ErrorCode.UNSUPPORTED_VERSION  # the version has no code for it
    if by.epoch < member.epoch and parts:
        # A commit in flight when the epoch rose (KIP-1251): valid for partitions that the member has kept.
        since = {**member.assigned, **member.revoking}
        if all(part in since and since[part] <= by.epoch for part in parts):
            return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if by.transactional else ErrorCode.STALE_MEMBER_EPOCH


def fetch_fault(group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
    """Return why the member may not fetch committed offsets, or NONE."""
    if not member_id and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH


def reconcile(
    member: ConsumerMember, target: Parts, target_epoch: int, *, owned: Parts | None, is_taken: Callable[[Part], bool]
) -> ConsumerMember:
    """Return the member after its next step (revoke, then take free partitions), or unchanged.

    `owned`: the partitions that the member reports, or None. `is_taken`: another member has it.
    """
    if member.state is ReconciliationState.STABLE and member.epoch == target_epoch:
        return member
    if member.state is ReconciliationState.UNREVOKED_PARTITIONS and _still_has(owned, member.revoking):
        return member
    kept = {part: epoch for part, epoch in member.assigned.items() if part in target}
    revoking = {part: epoch for part, epoch in member.assigned.items() if part not in target}
    if revoking and _still_has(owned, revoking):
        return dataclasses.replace(
            member, state=ReconciliationState.UNREVOKED_PARTITIONS, assigned=kept, revoking=revoking
        )
    wanted = [part for part in target if part not in kept]
    # No other member has taken the partitions that it has just revoked.
    free = [part for part in wanted if part in member.revoking or not is_taken(part)]
    return dataclasses.replace(
        member,
        state=ReconciliationState.STABLE if len(free) == len(wanted) else ReconciliationState.UNRELEASED_PARTITIONS,
        epoch=target_epoch,
        previous_epoch=member.epoch if member.epoch != target_epoch else member.previous_epoch,
        assigned=kept | dict.fromkeys(sorted(free), target_epoch),
        revoking={},
    )


def _still_has(owned: Parts | None, given_up: Mapping[Part, int]) -> bool:
    """Return whether a member may still have partitions that it must revoke."""
    return owned is None or any(part in given_up for part in owned)
