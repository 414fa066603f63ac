"""What a request of a classic group's member is answered with before anything happens: plain functions of the group.

The order of the checks is Kafka's (Java: ClassicGroup, GroupMetadataManager).
"""

from __future__ import annotations

import enum

from aiokwire.broker.groups.classic_group import ClassicGroup, ClassicMember
from aiokwire.broker.groups.requests import Committer, Join, Sync
from aiokwire.broker.groups.states import ClassicState
from aiokwire.error_codes import ErrorCode


class Rejoin(enum.Enum):
    """What becomes of a JoinGroup of a member that the group has."""

    REBALANCE = enum.auto()  # it takes part in the rebalance, or begins one
    REPEAT = enum.auto()  # it missed an answer, or joins for nothing: it gets the answer of this generation
    UNKNOWN = enum.auto()


def member_fault(group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
    """Why nobody may act as this member, NONE when somebody may."""
    if instance_id is not None:
        owner = group.static.get(instance_id)
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if owner != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def timeout_fault(asked: Join, least_ms: int, most_ms: int) -> ErrorCode:
    """Why a member may not have the session timeout that it asks for."""
    return ErrorCode.NONE if least_ms <= asked.session_timeout_ms <= most_ms else ErrorCode.INVALID_SESSION_TIMEOUT


def has_room(group: ClassicGroup, member_id: str, most: int) -> bool:
    """Whether a member may join without making the group larger than it may be."""
    member = group.members.get(member_id)
    if group.state is ClassicState.PREPARING_REBALANCE:
        # those who do not come back make room
        return (member is not None and member.joining is not None) or sum(1 for _ in group.joining) < most
    return group.state is ClassicState.EMPTY or member is not None or len(group.members) < most


def join_fault(group: ClassicGroup, asked: Join) -> ErrorCode:
    """Why a member, new or known, cannot join."""
    if group.state is ClassicState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not group.supports(asked.protocol_type, (name for name, _ in asked.protocols)):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not asked.member_id or asked.member_id in group.pending:
        return ErrorCode.NONE
    return member_fault(group, asked.member_id, asked.instance_id)


def plan_rejoin(group: ClassicGroup, member: ClassicMember, asked: Join) -> Rejoin:
    """What a JoinGroup of a known member leads to."""
    if group.state is ClassicState.PREPARING_REBALANCE:
        return Rejoin.REBALANCE
    if group.state is ClassicState.COMPLETING_REBALANCE:
        return Rejoin.REPEAT if member.protocols == asked.protocols else Rejoin.REBALANCE
    if group.state is ClassicState.STABLE:
        # The leader joins again when it sees that topics changed; the others get what they have.
        if member.member_id == group.leader or member.protocols != asked.protocols:
            return Rejoin.REBALANCE
        return Rejoin.REPEAT
    return Rejoin.UNKNOWN


def sync_fault(group: ClassicGroup, asked: Sync) -> ErrorCode:
    """Why a member gets no assignment."""
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
    """What a heartbeat is answered. REBALANCE_IN_PROGRESS: the member is alive and must join again."""
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
    """Why offsets cannot be committed in this name."""
    if group.state is ClassicState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if by.epoch < 0 and group.state is ClassicState.EMPTY:
        return ErrorCode.NONE  # a tool, or a consumer that assigns its partitions itself
    if by.epoch >= 0 or by.member_id or by.instance_id is not None:
        code = member_fault(group, by.member_id, by.instance_id)
        if code is not ErrorCode.NONE:
            return code
        if by.epoch != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    elif not by.transactional:
        return ErrorCode.UNKNOWN_MEMBER_ID  # nobody commits past members that are at work
    if not by.transactional and group.state is ClassicState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
