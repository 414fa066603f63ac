"""The assignors of classic groups: pure functions of members and partitions.

base            input and interface of assignors
range           range assignor
round_robin     round-robin assignor
sticky          sticky and cooperative-sticky (KIP-429) assignors
balancing       even shares with few moves
sticky_format   user data of sticky assignors
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from aiokwire.group.assignors.base import Assignment, Assignor, Members, PartitionInfo, Partitions, partitions_of
from aiokwire.group.assignors.range import RangeAssignor
from aiokwire.group.assignors.round_robin import RoundRobinAssignor
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
