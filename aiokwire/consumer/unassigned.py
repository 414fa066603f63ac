"""Why a consumer has no partitions yet, for the error of `Consumer.assigned`. No I/O."""

from __future__ import annotations

from collections.abc import Collection

from aiokwire.cluster import Cluster
from aiokwire.consumer.health import GroupHealth
from aiokwire.group import ClassicProtocolState, ConsumerProtocolState

_STABLE = {ClassicProtocolState.STABLE.name, ConsumerProtocolState.STABLE.name}


def why_unassigned(topics: Collection[str], cluster: Cluster, group: GroupHealth | None, *, is_subscribed: bool) -> str:
    """What it waits for, `group` being None without a group. `is_subscribed`: to topics, or to a pattern."""
    if not is_subscribed:
        return "nothing is subscribed to or assigned: call subscribe or assign"
    if group is not None and group.coordinator is None:
        return f"the coordinator of group {group.group_id!r} was not found: {group.trouble or 'no answer yet'}"
    missing = sorted(name for name in topics if name not in cluster.topics or not cluster.topics[name].partitions)
    if missing:
        return f"these topics do not exist: {', '.join(map(repr, missing))}"
    if group is None:
        return "the partitions of the topics are not known yet"
    if not topics:
        return f"group {group.group_id!r}: no topic matches the pattern"
    if group.state in _STABLE:
        return f"group {group.group_id!r} assigned no partition to this member: it has as many members as partitions"
    since = "" if group.rebalancing is None else f" for {group.rebalancing:.1f} s"
    members = "" if group.members is None else f", {group.members} members in the last generation"
    return f"group {group.group_id!r} has been rebalancing{since} (state {group.state}{members})"
