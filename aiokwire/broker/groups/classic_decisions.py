"""Checks of requests against a classic group, as pure functions.

The order of the checks is Kafka's (Java: ClassicGroup, GroupMetadataManager).
"""

from __future__ import annotations

import enum

from aiokwire.broker.groups.classic_group import ClassicGroup, ClassicMember
from aiokwire.broker.groups.requests import Committer, Join, Sync
from aiokwire.broker.groups.states import ClassicState
from aiokwire.error_codes import ErrorCode


class Rejoin(enum.Enum):
    """The effect of a JoinGroup of a known member."""

    REBALANCE = enum.auto()  # it joins the rebalance, or starts one
    REPEAT = enum.auto()  # it missed a response, or rejoins without need: it receives the response of this generation
    UNKNOWN = enum.auto()


def member_fault(group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
    """Return why a client may not act as this member, or NONE."""
    if instance_id is not None:
        owner = group.static.get(instance_id)
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if owner != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def timeout_fault(asked: Join, least_ms: int, most_ms: int) -> ErrorCode:
    """Return why a member may not have the session timeout that it requests, or NONE."""
    return ErrorCode.NONE if least_ms <= asked.session_timeout_ms <= most_ms else ErrorCode.INVALID_SESSION_TIMEOUT


def has_room(group: ClassicGroup, member_id: str, most: int) -> bool:
    """Return whether a member may join without exceeding the group's maximum size."""
    member = group.members.get(member_id)
    if group.state is ClassicState.PREPARING_REBALANCE:
        # members that do not rejoin make room
        return (member is not None and member.joining is not None) or sum(1 for _ in group.joining) < most
    return group.state is ClassicState.EMPTY or member is not None or len(group.members) < most


def join_fault(group: ClassicGroup, asked: Join) -> ErrorCode:
    """Return why a new or known member may not join, or NONE."""
    if group.state is ClassicState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not group.supports(asked.protocol_type, (name for name, _ in asked.protocols)):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not asked.member_id or asked.member_id in group.pending:
        return ErrorCode.NONE
    return member_fault(group, asked.member_id, asked.instance_id)


def plan_rejoin(group: ClassicGroup, member: ClassicMember, asked: Join) -> Rejoin:
    """Return the effect of a JoinGroup of a known member."""
    if group.state is ClassicState.PREPARING_REBALANCE:
        return Rejoin.REBALANCE
    if group.state is ClassicState.COMPLETING_REBALANCE:
        return Rejoin.REPEAT if member.protocols == asked.protocols else Rejoin.REBALANCE
    if group.state is ClassicState.STABLE:
        # The leader rejoins when topics change; the others keep their assignment.
        if member.member_id == group.leader or member.protocols != asked.protocols:
            return Rejoin.REBALANCE
        return Rejoin.REPEAT
    return Rejoin.UNKNOWN


def sync_fault(group: ClassicGroup, asked: Sync) -> ErrorCode:
    """Return why a member may not sync, or NONE."""
    if group.state is ClassicState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    code = member_fault(group, asked.member_id, asked.instance_id)
    if code is not ErrorCode.NONE:
        return code
    if asked.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if asked.protocol_type not in {None, group.protocol_type} or asked.protocol not in {None, group.protocol}:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.UNKNOWN_MEMBER_ID if group.state is ClassicState.EMPTY else ErrorCode.NONE


def heartbeat_fault(group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    """Return a heartbeat's code. REBALANCE_IN_PROGRESS: the member is alive and must rejoin."""
    if group.state is ClassicState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    code = member_fault(group, member_id, instance_id)
    if code is not ErrorCode.NONE:
        return code
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.UNKNOWN_MEMBER_ID if group.state is ClassicState.EMPTY else ErrorCode.NONE


def commit_fault(group: ClassicGroup, by: Committer) -> ErrorCode:
    """Return why the committer may not commit, or NONE."""
    if group.state is ClassicState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if by.epoch < 0 and group.state is ClassicState.EMPTY:
        return ErrorCode.NONE  # a tool, or a consumer that assigns its own partitions
    if by.epoch >= 0 or by.member_id or by.instance_id is not None:
        code = member_fault(group, by.member_id, by.instance_id)
        if code is not ErrorCode.NONE:
            return code
        if by.epoch != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    elif not by.transactional:
        return ErrorCode.UNKNOWN_MEMBER_ID  # only members may commit while there are any
    if not by.transactional and group.state is ClassicState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
