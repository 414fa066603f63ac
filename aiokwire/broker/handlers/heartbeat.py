"""Heartbeat: v0-4

Restarts the session timeout of a member; REBALANCE_IN_PROGRESS asks it to rejoin.

Version notes:
- v3: group instance ids (KIP-345)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import heartbeat as messages


def handle(request: messages.HeartbeatRequest, call: Call) -> MaybeAwaitable[messages.HeartbeatResponse]:
    """Respond at once."""
    groups = call.state.groups

    def beat() -> messages.HeartbeatResponse:
        return _response(
            groups.heartbeat(request.group_id, request.member_id, request.group_instance_id, request.generation_id)
        )

    return groups.run(request.group_id, beat, _response)


def _response(code: ErrorCode) -> messages.HeartbeatResponse:
    return messages.HeartbeatResponse(error_code=code)
