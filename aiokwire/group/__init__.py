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
status               state of a member, for health, events and metrics
metrics              the metrics of a member
strategy             assignors that a member offers
offsets              committed offsets
offset_requests      OffsetFetch and OffsetCommit
assignors/           assignment of partitions to members
subscription_format  bytes that members exchange
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.group.assignors import ASSIGNORS as ASSIGNORS, Assignor as Assignor, PartitionInfo as PartitionInfo
    from aiokwire.group.auto import AutoMember as AutoMember
    from aiokwire.group.classic.member import ClassicMember as ClassicMember
    from aiokwire.group.classic.states import ClassicProtocolState as ClassicProtocolState
    from aiokwire.group.consumer_protocol.member import ConsumerProtocolMember as ConsumerProtocolMember
    from aiokwire.group.consumer_protocol.states import ConsumerProtocolState as ConsumerProtocolState
    from aiokwire.group.membership import (
        CurrentMembership as CurrentMembership,
        Host as Host,
        MemberOptions as MemberOptions,
        Membership as Membership,
        metadata_refresh_interval as metadata_refresh_interval,
    )
    from aiokwire.group.metrics import MEMBER_METRICS as MEMBER_METRICS, member_samples as member_samples
    from aiokwire.group.offsets import GroupOffsets as GroupOffsets
    from aiokwire.group.status import (
        CoordinatorFound as CoordinatorFound,
        CoordinatorLost as CoordinatorLost,
        GroupEvent as GroupEvent,
        LoopBlocked as LoopBlocked,
        MemberStatus as MemberStatus,
        RebalanceEnded as RebalanceEnded,
        RebalanceStarted as RebalanceStarted,
    )
    from aiokwire.group.strategy import Strategy as Strategy, auto_assignors as auto_assignors
    from aiokwire.group.subscription_format import MemberSubscription as MemberSubscription
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "group.assignors": "ASSIGNORS Assignor PartitionInfo",
            "group.auto": "AutoMember",
            "group.classic.member": "ClassicMember",
            "group.classic.states": "ClassicProtocolState",
            "group.consumer_protocol.member": "ConsumerProtocolMember",
            "group.consumer_protocol.states": "ConsumerProtocolState",
            "group.membership": "CurrentMembership Host MemberOptions Membership metadata_refresh_interval",
            "group.metrics": "MEMBER_METRICS member_samples",
            "group.offsets": "GroupOffsets",
            "group.status": (
                "CoordinatorFound CoordinatorLost GroupEvent LoopBlocked MemberStatus RebalanceEnded RebalanceStarted"
            ),
            "group.strategy": "Strategy auto_assignors",
            "group.subscription_format": "MemberSubscription",
        },
    )
