"""JoinGroup: v0-9

A member joins its group's next generation; the response follows when all joined or time is up.

Version notes:
- v0: the rebalance timeout is the session timeout
- v4: a new member receives MEMBER_ID_REQUIRED and its id, and rejoins with it (KIP-394)
- v5: group instance ids (KIP-345); v7: the protocol's type; v8: a reason, for the log
- v9: a leader may be asked not to assign (KIP-814)
"""

from __future__ import annotations

import logging

from aiokwire._text import printable
from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.groups import Join, Joined
from aiokwire.broker.handlers._shared import client_of
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import join_group as messages

logger: logging.Logger = logging.getLogger(__name__)

ID_FIRST_SINCE = 4
INSTANCES_SINCE = 5
TYPE_SINCE = 7
SKIP_SINCE = 9


def handle(request: messages.JoinGroupRequest, call: Call) -> MaybeAwaitable[messages.JoinGroupResponse]:
    """Respond at once only if no rebalance is to be awaited."""
    if request.reason:
        logger.debug("member %r joins group %r: %s", request.member_id, request.group_id, printable(request.reason))
    asked = Join(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        client_of(call),
        request.protocol_type,
        tuple((one.name, one.metadata) for one in request.protocols),
        request.session_timeout_ms,
        request.rebalance_timeout_ms if call.version >= 1 else request.session_timeout_ms,
        needs_known_id=call.version >= ID_FIRST_SINCE,
        may_skip_assignment=call.version >= SKIP_SINCE,
    )
    return call.state.groups.wait(
        request.group_id,
        lambda reply: call.state.groups.join(asked, reply),
        lambda answer: _response(answer, call.version),
        lambda code: Joined(code, request.member_id),
    )


def refuse(request: messages.JoinGroupRequest, version: int, code: ErrorCode) -> messages.JoinGroupResponse:
    """Return an error in no generation."""
    return _response(Joined(code, request.member_id), version)


def _response(answer: Joined, version: int) -> messages.JoinGroupResponse:
    return messages.JoinGroupResponse(
        error_code=answer.code,
        generation_id=answer.generation,
        protocol_type=answer.protocol_type if version >= TYPE_SINCE else None,
        protocol_name=answer.protocol if version >= TYPE_SINCE else answer.protocol or "",
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            messages.JoinGroupResponseMember(
                member_id=one.member_id,
                group_instance_id=one.instance_id if version >= INSTANCES_SINCE else None,
                metadata=one.metadata,
            )
            for one in answer.members
        ],
    )
