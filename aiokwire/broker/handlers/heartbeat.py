"""Heartbeat: v0-4

A member of the classic protocol is alive; REBALANCE_IN_PROGRESS asks it to join again.

Version notes:
- v3: group instance ids (KIP-345)
"""

from __future__ import annotations

from collections.abc import Awaitable

from aiokwire.broker.dispatch import Call
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import heartbeat


def handle(
    request: heartbeat.HeartbeatRequest, call: Call
) -> heartbeat.HeartbeatResponse | Awaitable[heartbeat.HeartbeatResponse]:
    """Answer at once."""
    groups = call.state.groups

    def beat() -> heartbeat.HeartbeatResponse:
        return _response(
            groups.heartbeat(request.group_id, request.member_id, request.group_instance_id, request.generation_id)
        )

    return groups.run(request.group_id, beat, _response)


def _response(code: ErrorCode) -> heartbeat.HeartbeatResponse:
    return heartbeat.HeartbeatResponse(error_code=code)
