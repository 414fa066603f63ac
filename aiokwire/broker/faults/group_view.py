"""A group as a test sees it: `Broker.faults.group(...)`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from aiokwire.broker.groups import ClassicGroup, Group


@dataclasses.dataclass(frozen=True)
class GroupView:
    """A group at one moment."""

    group_id: str
    protocol: str
    """`classic` or `consumer`."""
    state: str
    """As Kafka's tools call it: `Stable`, `Empty`, ..."""
    generation: int
    """Of the consumer protocol: the group's epoch."""
    leader: str | None
    """The member id of the leader; the consumer protocol has none."""
    members: Mapping[str, str | None]
    """The members' ids, each with its group instance id, in the order in which they came."""


def view_of(group: Group) -> GroupView:
    """Return what a group looks like now."""
    classic = isinstance(group, ClassicGroup)
    return GroupView(
        group.group_id,
        "classic" if classic else "consumer",
        group.state.value,
        group.generation if isinstance(group, ClassicGroup) else group.epoch,
        group.leader if isinstance(group, ClassicGroup) else None,
        {member_id: member.instance_id for member_id, member in group.members.items()},
    )
