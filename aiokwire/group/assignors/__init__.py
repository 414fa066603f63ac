"""The assignors of classic groups: pure functions of members and partitions.

base        input and interface of assignors
stateless   range and round-robin assignors
sticky      sticky and cooperative-sticky (KIP-429) assignors
balancing   even shares with few moves
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from aiokwire.group.assignors.base import Assignment, Assignor, Members, PartitionInfo, Partitions, partitions_of
from aiokwire.group.assignors.stateless import RangeAssignor, RoundRobinAssignor
from aiokwire.group.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

# By their names in the protocol.
ASSIGNORS: Final[Mapping[str, Callable[[], Assignor]]] = MappingProxyType(
    {
        assignor.name: assignor
        for assignor in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
    }
)

__all__ = [
    "ASSIGNORS",
    "Assignment",
    "Assignor",
    "CooperativeStickyAssignor",
    "Members",
    "PartitionInfo",
    "Partitions",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
    "partitions_of",
]
