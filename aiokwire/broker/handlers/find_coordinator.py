"""FindCoordinator: v0-6

There is one broker: it coordinates every group and every transaction.

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
    host, port = call.advertised() if code is ErrorCode.NONE else ("", -1)
    node = call.state.node_id if code is ErrorCode.NONE else -1
    if call.version >= 4:
        return find_coordinator.FindCoordinatorResponse(
            coordinators=[
                find_coordinator.Coordinator(
                    key=key, node_id=node, host=host, port=port, error_code=code, error_message=message
                )
                for key in request.coordinator_keys
            ],
        )
    return find_coordinator.FindCoordinatorResponse(
        error_code=code, error_message=message if call.version else "", node_id=node, host=host, port=port
    )


def _verdict(key_type: int) -> tuple[ErrorCode, str | None]:
    if key_type in {GROUP, TRANSACTION}:
        return ErrorCode.NONE, None
    return ErrorCode.INVALID_REQUEST, f"this broker coordinates no keys of type {key_type}"
