"""DeleteGroups: v0-2

Groups without members go, with their offsets.
"""

from __future__ import annotations

from collections.abc import Awaitable

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._groups import group_fault
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import delete_groups


def handle(request: delete_groups.DeleteGroupsRequest, call: Call) -> Awaitable[delete_groups.DeleteGroupsResponse]:
    """Answer once it is logged."""
    return _delete(request, call)


async def _delete(request: delete_groups.DeleteGroupsRequest, call: Call) -> delete_groups.DeleteGroupsResponse:
    return delete_groups.DeleteGroupsResponse(
        results=[
            delete_groups.DeletableGroupResult(group_id=group_id, error_code=await _delete_one(call, group_id))
            for group_id in request.groups_names
        ]
    )


async def _delete_one(call: Call, group_id: str) -> ErrorCode:
    code = group_fault(call, group_id)
    if code is not ErrorCode.NONE:
        return code
    if call.state.groups.find(group_id) is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    answer = call.state.groups.run(group_id, lambda: call.state.groups.delete(group_id), lambda refusal: refusal)
    return answer if isinstance(answer, ErrorCode) else await answer
