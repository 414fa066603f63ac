"""The requests of a member of a classic group, in all their versions. No I/O.

- JoinGroup: rebalance timeout from v1, instance id from v5, reason from v8.
- SyncGroup and Heartbeat: instance id from v3; SyncGroup names the protocol from v5.
- LeaveGroup: a list of members from v3, with reasons from v5.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from aiokwire.net import ApiVersions
from aiokwire.protocol import Response
from aiokwire.protocol.messages import heartbeat, join_group, leave_group, sync_group
from aiokwire.types import GroupMetadata

PROTOCOL_TYPE: Final = "consumer"
# The first version of LeaveGroup with a list of members.
FIRST_VERSION_WITH_MEMBERS: Final = leave_group.LeaveGroupRequest.FIRST_VERSION_WITH["members"]
# The coordinator rejects a longer reason.
REASON_LENGTH: Final = 255


def join_request(
    member: GroupMetadata,
    protocols: Iterable[tuple[str, bytes]],
    *,
    session_timeout: float,
    rebalance_timeout: float,
    reason: str,
) -> join_group.JoinGroupRequest:
    """Build JoinGroup. Times in seconds; `protocols`: assignors' names and subscriptions."""
    return join_group.JoinGroupRequest(
        group_id=member.group_id,
        session_timeout_ms=round(session_timeout * 1000),
        rebalance_timeout_ms=round(rebalance_timeout * 1000),
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[join_group.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        reason=reason[:REASON_LENGTH],
    )


def sync_request(member: GroupMetadata, protocol: str, assignments: Mapping[str, bytes]) -> sync_group.SyncGroupRequest:
    """Build SyncGroup. `assignments`: the leader's decision by member id; else empty."""
    return sync_group.SyncGroupRequest(
        group_id=member.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=data)
            for member_id, data in assignments.items()
        ],
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HeartbeatContent:
    """The heartbeats of one generation; a pure function, called in the heartbeat thread."""

    member: GroupMetadata

    def __call__(self, versions: ApiVersions, _last: Response | None) -> tuple[heartbeat.HeartbeatRequest, int]:
        request = heartbeat.HeartbeatRequest(
            group_id=self.member.group_id,
            generation_id=self.member.generation,
            member_id=self.member.member_id,
            group_instance_id=self.member.group_instance_id,
        )
        return request, versions.pick(heartbeat.HeartbeatRequest)


def leave_request(
    member: GroupMetadata, reason: str
) -> tuple[leave_group.LeaveGroupRequest, Callable[[ApiVersions], int]]:
    """Return LeaveGroup and the chooser of its version, which sets the fields of that version."""
    request = leave_group.LeaveGroupRequest(group_id=member.group_id)

    def version(versions: ApiVersions) -> int:
        picked = versions.pick(leave_group.LeaveGroupRequest)
        request.member_id, request.members = member.member_id, []
        if picked >= FIRST_VERSION_WITH_MEMBERS:
            leaving = leave_group.MemberIdentity(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                reason=reason[:REASON_LENGTH],
            )
            request.member_id, request.members = "", [leaving]
        return picked

    return request, version
