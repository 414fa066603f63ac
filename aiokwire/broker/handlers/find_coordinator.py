"""FindCoordinator: v0-6

Each node coordinates some groups and some transactions.

Version notes:
- v1: key types (0 group, 1 transaction, 2 share group) and error messages
- v4: several keys at once
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import DENIED, AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import find_coordinator as messages

GROUP = 0
TRANSACTION = 1
SEVERAL_SINCE = 4


def handle(request: messages.FindCoordinatorRequest, call: Call) -> messages.FindCoordinatorResponse:
    """Respond at once."""
    if request.key_type not in {GROUP, TRANSACTION}:
        message = f"this broker coordinates no keys of type {request.key_type}"
        return refuse(request, call.version, ErrorCode.INVALID_REQUEST, message)
    if call.version >= SEVERAL_SINCE:
        return messages.FindCoordinatorResponse(
            coordinators=[_coordinator(key, call, request.key_type) for key in request.coordinator_keys]
        )
    one = _coordinator(request.key, call, request.key_type)
    if one.error_code:
        return refuse(request, call.version, ErrorCode.of(one.error_code), ErrorCode.of(one.error_code).description)
    return messages.FindCoordinatorResponse(
        error_message=None if call.version else "", node_id=one.node_id, host=one.host, port=one.port
    )


def refuse(
    request: messages.FindCoordinatorRequest, version: int, code: ErrorCode, message: str | None = None
) -> messages.FindCoordinatorResponse:
    """Return an error for each key."""
    if version < SEVERAL_SINCE:
        return messages.FindCoordinatorResponse(
            error_code=code, error_message=message if version else "", node_id=-1, port=-1
        )
    return messages.FindCoordinatorResponse(
        coordinators=[
            messages.Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
            for key in request.coordinator_keys
        ]
    )


def _coordinator(key: str, call: Call, key_type: int) -> messages.Coordinator:
    kind = ResourceType.GROUP if key_type == GROUP else ResourceType.TRANSACTIONAL_ID
    if not call.is_allowed(AclOperation.DESCRIBE, kind, key):
        return messages.Coordinator(key=key, node_id=-1, port=-1, error_code=DENIED[kind], error_message=None)
    node = call.state.nodes.coordinator(key)
    host, port = call.advertised(node)
    return messages.Coordinator(key=key, node_id=node.id, host=host, port=port, error_message=None)
