"""DeleteGroups: v0-2

Deletes groups without members, and their offsets.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import group_fault
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import delete_groups as messages


async def handle(request: messages.DeleteGroupsRequest, call: Call) -> messages.DeleteGroupsResponse:
    """Respond once the deletion is logged."""
    return messages.DeleteGroupsResponse(
        results=[
            messages.DeletableGroupResult(group_id=group_id, error_code=await _delete_one(call, group_id))
            for group_id in request.groups_names
        ]
    )


def refuse(request: messages.DeleteGroupsRequest, version: int, code: ErrorCode) -> messages.DeleteGroupsResponse:
    """Return an error for each group."""
    return messages.DeleteGroupsResponse(
        results=[messages.DeletableGroupResult(group_id=group_id, error_code=code) for group_id in request.groups_names]
    )


async def _delete_one(call: Call, group_id: str) -> ErrorCode:
    if not call.is_allowed(AclOperation.DELETE, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    code = group_fault(call, group_id)
    if code is not ErrorCode.NONE:
        return code
    if call.state.groups.find(group_id) is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    answer = call.state.groups.run(group_id, lambda: call.state.groups.delete(group_id), lambda refusal: refusal)
    return answer if isinstance(answer, ErrorCode) else await answer
