"""Which requests only the coordinator of a group or transactional id answers, where several nodes are played."""

from __future__ import annotations

from typing import Any

from aiokwire.broker.state import BrokerState
from aiokwire.protocol import ApiKey, Request

# The field that names the key; the group's comes first where a request has a transactional id too.
_KEYS = {
    ApiKey.INIT_PRODUCER_ID: "transactional_id",
    ApiKey.ADD_PARTITIONS_TO_TXN: "v3_and_below_transactional_id",
    ApiKey.ADD_OFFSETS_TO_TXN: "transactional_id",
    ApiKey.END_TXN: "transactional_id",
    ApiKey.TXN_OFFSET_COMMIT: "group_id",
    ApiKey.OFFSET_COMMIT: "group_id",
    ApiKey.OFFSET_FETCH: "group_id",
    ApiKey.OFFSET_DELETE: "group_id",
    ApiKey.JOIN_GROUP: "group_id",
    ApiKey.SYNC_GROUP: "group_id",
    ApiKey.HEARTBEAT: "group_id",
    ApiKey.LEAVE_GROUP: "group_id",
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "group_id",
}
# Requests about several groups (DescribeGroups and the like) are answered group by group in their handlers.
_LISTS = ("groups", "transactions")  # newer versions name several keys, which clients send to one coordinator


def is_elsewhere(request: Request[Any], state: BrokerState, node_id: int) -> bool:
    """Whether another node than this one coordinates what a request is about."""
    field = _KEYS.get(request.API)
    if field is None:
        return False
    key = getattr(request, field, None)
    for name in _LISTS:
        for one in getattr(request, name, None) or ():
            key = key or getattr(one, field.removeprefix("v3_and_below_"))
    return bool(key) and state.nodes.coordinator(str(key)).id != node_id
