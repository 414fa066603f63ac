"""Who reads what in a classic group: the assignors, as plain functions of members and partitions.

base            what assignors are given      range, round_robin   Java's
sticky          the eager and the cooperative one (KIP-429)
balancing       even shares with few moves    sticky_format        what sticky members remember
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from aiokwire.group.assignors.base import Assignment, Assignor, Members, PartitionInfo, Partitions, partitions_of
from aiokwire.group.assignors.range import RangeAssignor
from aiokwire.group.assignors.round_robin import RoundRobinAssignor
from aiokwire.group.assignors.sticky import CooperativeStickyAssignor, StickyAssignor

# By the names that groups know them by.
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
