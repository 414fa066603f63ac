"""Membership in a group, the offsets that it committed, and the assignment of partitions. Used by the consumer.

membership           the interface between a consumer and its member   auto                picks the protocol
classic/             a member that uses the classic protocol           consumer_protocol/  a member that uses KIP-848
member_base          what members of both protocols have in common     state_table         states, pending signals
heartbeats           when heartbeats are sent, and where to            heartbeat_thread    sends them
coordinator_client   requests to the group's coordinator               commit_gate         commits and joins take turns
status               state of a member, for health and events          strategy            which assignors it offers
offsets              committed offsets                                 offset_requests     requests and responses
assignors/           who reads what                                    subscription_format what members send one another
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire.group.assignors import ASSIGNORS, Assignor, PartitionInfo
    from aiokwire.group.auto import AutoMember
    from aiokwire.group.classic.member import ClassicMember
    from aiokwire.group.classic.states import ClassicProtocolEvent, ClassicProtocolState
    from aiokwire.group.commit_gate import CommitGate
    from aiokwire.group.consumer_protocol.member import ConsumerProtocolMember
    from aiokwire.group.consumer_protocol.states import ConsumerProtocolState
    from aiokwire.group.heartbeat_thread import HeartbeatSchedule, HeartbeatThread
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
    from aiokwire.group.subscription_format import (
        MemberSubscription,
        decode_assignment,
        decode_subscription,
        encode_assignment,
        encode_subscription,
    )

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "AutoMember",
    "ClassicMember",
    "ClassicProtocolEvent",
    "ClassicProtocolState",
    "CommitGate",
    "ConsumerProtocolMember",
    "ConsumerProtocolState",
    "CoordinatorFound",
    "CoordinatorLost",
    "GroupEvent",
    "GroupOffsets",
    "HeartbeatSchedule",
    "HeartbeatThread",
    "Host",
    "LoopBlocked",
    "MemberOptions",
    "MemberStatus",
    "MemberSubscription",
    "Membership",
    "PartitionInfo",
    "RebalanceEnded",
    "RebalanceStarted",
    "Strategy",
    "auto_assignors",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "metadata_refresh_interval",
]

# The module of each name, loaded when the name is first used: the options of a consumer need the assignors alone.
_HOMES = {
    "assignors": (
        "ASSIGNORS",
        "Assignor",
        "PartitionInfo",
    ),
    "auto": ("AutoMember",),
    "classic.member": ("ClassicMember",),
    "classic.states": (
        "ClassicProtocolEvent",
        "ClassicProtocolState",
    ),
    "commit_gate": ("CommitGate",),
    "consumer_protocol.member": ("ConsumerProtocolMember",),
    "consumer_protocol.states": ("ConsumerProtocolState",),
    "heartbeat_thread": (
        "HeartbeatSchedule",
        "HeartbeatThread",
    ),
    "membership": (
        "Host",
        "MemberOptions",
        "Membership",
        "metadata_refresh_interval",
    ),
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
    "strategy": (
        "Strategy",
        "auto_assignors",
    ),
    "subscription_format": (
        "MemberSubscription",
        "decode_assignment",
        "decode_subscription",
        "encode_assignment",
        "encode_subscription",
    ),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            value: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
