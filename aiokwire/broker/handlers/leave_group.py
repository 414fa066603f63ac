"""LeaveGroup: v0-5

Members leave, or a tool removes them.

Version notes:
- v3: several members, each by its id or its group instance id (KIP-345)
- v5: a reason, for the log
"""

from __future__ import annotations

import logging

from aiokwire._text import printable
from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.groups import Leaver, too_long
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import leave_group as messages

logger: logging.Logger = logging.getLogger(__name__)

SEVERAL_SINCE = 3


def handle(request: messages.LeaveGroupRequest, call: Call) -> MaybeAwaitable[messages.LeaveGroupResponse]:
    """Respond at once."""
    if not request.group_id or too_long(request.group_id):
        return _refusal(ErrorCode.INVALID_GROUP_ID)
    return call.state.groups.run(request.group_id, lambda: _leave(request, call), _refusal)


def _leave(request: messages.LeaveGroupRequest, call: Call) -> messages.LeaveGroupResponse:
    if call.version < SEVERAL_SINCE:
        (code,) = call.state.groups.leave(request.group_id, [Leaver(request.member_id, None)])
        return messages.LeaveGroupResponse(error_code=code)
    for one in request.members:
        if one.reason:
            logger.debug("member %r leaves group %r: %s", one.member_id, request.group_id, printable(one.reason))
    leavers = [Leaver(one.member_id, one.group_instance_id) for one in request.members]
    codes = call.state.groups.leave(request.group_id, leavers)
    return messages.LeaveGroupResponse(
        members=[
            messages.MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=code)
            for one, code in zip(request.members, codes, strict=True)
        ]
    )


def _refusal(code: ErrorCode) -> messages.LeaveGroupResponse:
    return messages.LeaveGroupResponse(error_code=code)
