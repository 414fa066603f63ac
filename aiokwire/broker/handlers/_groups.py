"""What the handlers of groups say in the same way."""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.groups import Client
from aiokwire.error_codes import ErrorCode

# Bits by ACL operation, as a broker without an authorizer answers: read, delete, describe, describe and alter configs.
GROUP_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))


def client_of(call: Call) -> Client:
    """Who sends a request, as groups remember it; the host is written as Java does."""
    return Client(call.client_id or "", f"/{call.peer.rpartition(':')[0]}")


def group_fault(call: Call, group_id: str) -> ErrorCode:
    """Why this node cannot say anything about a group, where a request names several."""
    state = call.state
    if state.plays_several and state.nodes.coordinator(group_id).id != call.node.id:
        return ErrorCode.NOT_COORDINATOR
    return state.groups.load_fault(group_id)
