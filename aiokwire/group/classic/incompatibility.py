"""Explains INCONSISTENT_GROUP_PROTOCOL: the assignors offered and in use, and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aiokwire.errors import KafkaError
from aiokwire.group.assignors import Assignor
from aiokwire.group.classic.requests import PROTOCOL_TYPE
from aiokwire.group.coordinator_client import CoordinatorClient
from aiokwire.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest

TIMEOUT: Final = 5.0  # seconds
_SHOWN: Final = 5  # members


async def explain(coordinator: CoordinatorClient, group_id: str, offered: Sequence[Assignor]) -> str:
    """Return the explanation. Sends one request to the coordinator; a response is not required."""
    names = ", ".join(assignor.name for assignor in offered)
    try:
        answer = await coordinator.request(DescribeGroupsRequest(groups=[group_id]), timeout=TIMEOUT)
    except KafkaError:
        answer = None
    group = answer.groups[0] if answer is not None and answer.groups else None
    return f"this member offers {names}; {_found(group)}"


def _found(group: DescribedGroup | None) -> str:
    change = 'set partition_assignment_strategy="auto", or an assignor that all members have'
    if group is None or group.error_code or not group.members:
        return f"the assignors of the other members are not known; {change}"
    members = ", ".join(f"{member.client_id!r} at {member.client_host}" for member in group.members[:_SHOWN])
    more = f" and {len(group.members) - _SHOWN} more" if len(group.members) > _SHOWN else ""
    if group.protocol_type not in ("", PROTOCOL_TYPE):
        return (
            f"the group has members of the type {group.protocol_type!r} ({members}{more}), which share no partitions "
            "with consumers; choose another group_id"
        )
    used = f"use {group.protocol_data!r}" if group.protocol_data else "are in a rebalance"
    return f"the group's members ({members}{more}) {used}; {change}"
