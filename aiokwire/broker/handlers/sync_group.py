"""SyncGroup: v0-5

The leader sends the assignment; each member receives its part once it is logged.

Version notes:
- v3: group instance ids (KIP-345)
- v5: the protocol's type and name, checked and returned
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.groups import Sync, Synced
from aiokwire.protocol.messages import sync_group as messages


def handle(request: messages.SyncGroupRequest, call: Call) -> MaybeAwaitable[messages.SyncGroupResponse]:
    """Respond at once if there is an assignment."""
    asked = Sync(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {one.member_id: one.assignment for one in request.assignments},
    )
    return call.state.groups.wait(
        request.group_id, lambda reply: call.state.groups.sync(asked, reply), _response, Synced
    )


def _response(answer: Synced) -> messages.SyncGroupResponse:
    return messages.SyncGroupResponse(
        error_code=answer.code,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol,
        assignment=answer.assignment,
    )
