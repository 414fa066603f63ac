"""DescribeGroups: v0-6

Groups of the classic protocol with their members.

Version notes:
- v3: which operations are allowed; v4: group instance ids
- v6: GROUP_ID_NOT_FOUND with a message; before, the state Dead
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.groups import ClassicGroup, ClassicState
from aiokwire.broker.handlers._shared import NOT_ASKED, allowed_operations, group_fault
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import describe_groups as messages

INSTANCES_SINCE = 4
NOT_FOUND_SINCE = 6


def handle(request: messages.DescribeGroupsRequest, call: Call) -> messages.DescribeGroupsResponse:
    """Respond at once."""
    groups = [_describe(call, group_id) for group_id in request.groups]
    for one in groups:
        allowed = request.include_authorized_operations and not one.error_code
        one.authorized_operations = allowed_operations(call, ResourceType.GROUP, one.group_id) if allowed else NOT_ASKED
    return messages.DescribeGroupsResponse(groups=groups)


def refuse(request: messages.DescribeGroupsRequest, version: int, code: ErrorCode) -> messages.DescribeGroupsResponse:
    """Return an error for each group."""
    return messages.DescribeGroupsResponse(
        groups=[messages.DescribedGroup(error_code=code, group_id=group_id) for group_id in request.groups]
    )


def _describe(call: Call, group_id: str) -> messages.DescribedGroup:
    code = group_fault(call, group_id)
    if not call.is_allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if code is not ErrorCode.NONE:
        return messages.DescribedGroup(error_code=code, group_id=group_id)
    group = call.state.groups.find(group_id)
    if not isinstance(group, ClassicGroup):
        if call.version < NOT_FOUND_SINCE:
            return messages.DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD.value)
        what = "is not a classic group" if group is not None else "not found"
        return messages.DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=f"Group {group_id} {what}.",
            group_id=group_id,
            group_state=ClassicState.DEAD.value,
        )
    settled = group.state is ClassicState.STABLE
    return messages.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol or "") if settled else "",
        members=[
            messages.DescribedGroupMember(
                member_id=one.member_id,
                group_instance_id=one.instance_id if call.version >= INSTANCES_SINCE else None,
                client_id=one.client.client_id,
                client_host=one.client.host,
                member_metadata=one.metadata(group.protocol) if settled else b"",
                member_assignment=one.assignment if settled else b"",
            )
            for one in group.members.values()
        ],
    )
