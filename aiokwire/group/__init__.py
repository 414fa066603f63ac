"""Membership in a group, its committed offsets, and the assignment of partitions. Used by the
consumer.

membership           interface between a consumer and its member
auto                 selects the protocol of a member
classic/             members that use the classic protocol
consumer_protocol/   members that use the consumer protocol (KIP-848)
member_base          common part of members of both protocols
state_table          events, state tables, pending signals
heartbeats           schedules heartbeats
heartbeat_thread     sends heartbeats
coordinator_client   requests to the group's coordinator
commit_gate          keeps commits and joins apart
status               state of a member, for health and events
strategy             assignors that a member offers
offsets              committed offsets
offset_requests      OffsetFetch and OffsetCommit
assignors/           assignment of partitions to members
subscription_format  bytes that members exchange
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire.group.assignors import ASSIGNORS, Assignor
    from aiokwire.group.auto import AutoMember
    from aiokwire.group.classic.member import ClassicMember
    from aiokwire.group.classic.states import ClassicProtocolState
    from aiokwire.group.consumer_protocol.member import ConsumerProtocolMember
    from aiokwire.group.consumer_protocol.states import ConsumerProtocolState
    from aiokwire.group.membership import Host, MemberOptions, Membership, metadata_refresh_interval
    from aiokwire.group.offsets import GroupOffsets
    from aiokwire.group.status import (
        CoordinatorFound,
        CoordinatorLost,
        GroupEvent,
        LoopBlocked,
        MemberStatus,
        RebalanceEnded,
        RebalanceStarted,
    )
    from aiokwire.group.strategy import Strategy, auto_assignors

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "AutoMember",
    "ClassicMember",
    "ClassicProtocolState",
    "ConsumerProtocolMember",
    "ConsumerProtocolState",
    "CoordinatorFound",
    "CoordinatorLost",
    "GroupEvent",
    "GroupOffsets",
    "Host",
    "LoopBlocked",
    "MemberOptions",
    "MemberStatus",
    "Membership",
    "RebalanceEnded",
    "RebalanceStarted",
    "Strategy",
    "auto_assignors",
    "metadata_refresh_interval",
]

# The module of each name. It is imported with the name's first use: the options of a consumer need the assignors alone.
_HOMES = {
    "assignors": ("ASSIGNORS", "Assignor"),
    "auto": ("AutoMember",),
    "classic.member": ("ClassicMember",),
    "classic.states": ("ClassicProtocolState",),
    "consumer_protocol.member": ("ConsumerProtocolMember",),
    "consumer_protocol.states": ("ConsumerProtocolState",),
    "membership": ("Host", "MemberOptions", "Membership", "metadata_refresh_interval"),
    "offsets": ("GroupOffsets",),
    "status": (
        "CoordinatorFound",
        "CoordinatorLost",
        "GroupEvent",
        "LoopBlocked",
        "MemberStatus",
        "RebalanceEnded",
        "RebalanceStarted",
    ),
    "strategy": ("Strategy", "auto_assignors"),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            value: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
