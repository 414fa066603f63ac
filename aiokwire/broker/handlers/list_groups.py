"""ListGroups: v0-5

The groups that this node coordinates and that match all filters.

Version notes:
- v4: states, as a filter and in the response; v5: types likewise
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.groups import CONSUMER, ClassicGroup
from aiokwire.broker.handlers._shared import group_fault
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import list_groups as messages


def handle(request: messages.ListGroupsRequest, call: Call) -> messages.ListGroupsResponse:
    """Respond at once."""
    states = {name.lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    response = messages.ListGroupsResponse()
    sees_all = call.is_allowed_in_cluster(AclOperation.DESCRIBE, is_asked=False)
    for group_id in call.state.groups.ids():
        if group_fault(call, group_id) is not ErrorCode.NONE:
            continue
        if not sees_all and not call.is_allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group_id, is_asked=False):
            continue
        group = call.state.groups.find(group_id)
        if group is None:
            continue  # its first offsets wait for the end of a transaction
        classic = isinstance(group, ClassicGroup)
        kind = "classic" if classic else "consumer"
        if (states and group.state.value.lower() not in states) or (types and kind not in types):
            continue
        response.groups.append(
            messages.ListedGroup(
                group_id=group_id,
                protocol_type=group.protocol_type if isinstance(group, ClassicGroup) else CONSUMER,
                group_state=group.state.value,
                group_type=kind,
            )
        )
    return response
