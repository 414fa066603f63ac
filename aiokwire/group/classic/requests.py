"""The requests of a member of a classic group, in all their versions. No I/O.

- JoinGroup: rebalance timeout from v1, instance id from v5, reason from v8.
- SyncGroup and Heartbeat: instance id from v3; SyncGroup names the protocol from v5.
- LeaveGroup: a list of members from v3, with reasons from v5.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from aiokwire.net import ApiVersions
from aiokwire.protocol import Response
from aiokwire.protocol.messages import heartbeat, join_group, leave_group, sync_group

PROTOCOL_TYPE: Final = "consumer"
# Since when LeaveGroup has a list of members; since when a group keeps static members.
FIRST_VERSION_WITH_MEMBERS: Final = leave_group.LeaveGroupRequest.FIRST_VERSION_WITH["members"]
# The coordinator shortens no reason: it refuses a long one.
REASON_LENGTH: Final = 255


class Identity(NamedTuple):
    """Who a member is; part of every request."""

    group_id: str
    member_id: str = ""
    instance_id: str | None = None


def join_request(
    who: Identity,
    protocols: Iterable[tuple[str, bytes]],
    *,
    session_timeout: float,
    rebalance_timeout: float,
    reason: str,
) -> join_group.JoinGroupRequest:
    """Times in seconds; `protocols` are the assignors' names each with the member's subscription."""
    return join_group.JoinGroupRequest(
        group_id=who.group_id,
        session_timeout_ms=round(session_timeout * 1000),
        rebalance_timeout_ms=round(rebalance_timeout * 1000),
        member_id=who.member_id,
        group_instance_id=who.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[join_group.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        reason=reason[:REASON_LENGTH],
    )


def sync_request(
    who: Identity, generation: int, protocol: str, assignments: Mapping[str, bytes]
) -> sync_group.SyncGroupRequest:
    """`assignments` by member id: the leader's decision; empty from everybody else."""
    return sync_group.SyncGroupRequest(
        group_id=who.group_id,
        generation_id=generation,
        member_id=who.member_id,
        group_instance_id=who.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=data)
            for member_id, data in assignments.items()
        ],
    )


def heartbeat_request(who: Identity, generation: int) -> heartbeat.HeartbeatRequest:
    return heartbeat.HeartbeatRequest(
        group_id=who.group_id,
        generation_id=generation,
        member_id=who.member_id,
        group_instance_id=who.instance_id,
    )


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class HeartbeatContent:
    """The heartbeats of one generation; a pure function, called in the heartbeat thread."""

    request: heartbeat.HeartbeatRequest

    def __call__(self, versions: ApiVersions, _last: Response | None) -> tuple[heartbeat.HeartbeatRequest, int]:
        return self.request, versions.pick(heartbeat.HeartbeatRequest)


class Leaving:
    """LeaveGroup; its fields are set when the version is chosen."""

    def __init__(self, who: Identity, reason: str) -> None:
        self.request = leave_group.LeaveGroupRequest(group_id=who.group_id)
        self.member_id = who.member_id
        self._who = who
        self._reason = reason[:REASON_LENGTH]

    def version(self, versions: ApiVersions) -> int:
        """The newest version."""
        picked = versions.pick(leave_group.LeaveGroupRequest)
        request = self.request
        if picked >= FIRST_VERSION_WITH_MEMBERS:
            request.member_id = ""
            request.members = [
                leave_group.MemberIdentity(
                    member_id=self._who.member_id, group_instance_id=self._who.instance_id, reason=self._reason
                )
            ]
        else:
            request.member_id = self._who.member_id
            request.members = []
        return picked
