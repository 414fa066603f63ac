"""FindCoordinator: v0-6

Each node coordinates some groups and some transactions.

Version notes:
- v1: key types (0 group, 1 transaction, 2 share group) and error messages
- v4: several keys at once
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import find_coordinator

GROUP = 0
TRANSACTION = 1


def handle(request: find_coordinator.FindCoordinatorRequest, call: Call) -> find_coordinator.FindCoordinatorResponse:
    """Answer at once."""
    code, message = _verdict(request.key_type)
    if call.version >= 4:
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[_coordinator(key, call, code, message) for key in request.coordinator_keys]
        )
    node, host, port = _place(request.key, call, code)
    return find_coordinator.FindCoordinatorResponse(
        error_code=code, error_message=message if call.version else "", node_id=node, host=host, port=port
    )


def _coordinator(key: str, call: Call, code: ErrorCode, message: str | None) -> find_coordinator.Coordinator:
    node, host, port = _place(key, call, code)
    return find_coordinator.Coordinator(
        key=key, node_id=node, host=host, port=port, error_code=code, error_message=message
    )


def _place(key: str, call: Call, code: ErrorCode) -> tuple[int, str, int]:
    if code is not ErrorCode.NONE:
        return -1, "", -1
    node = call.state.nodes.coordinator(key)
    return node.id, *call.advertised(node)


def _verdict(key_type: int) -> tuple[ErrorCode, str | None]:
    if key_type in {GROUP, TRANSACTION}:
        return ErrorCode.NONE, None
    return ErrorCode.INVALID_REQUEST, f"this broker coordinates no keys of type {key_type}"
