"""What belongs to a group: its members, the offsets that it committed, and who reads what. Used by the consumer.

membership       what consumer and group ask of each other   classic   a member, by the classic protocol
states, decisions, generation, leading, heartbeats, link, options, classic_requests: its parts
modern           a member, by the consumer protocol (KIP-848); modern_states, modern_decisions, modern_requests, beats,
                 topic_names: its parts                      auto   whichever of the two the broker speaks
pulse            heartbeats while the loop is blocked        commit_gate          commits and joins take turns
status           how a member is, for health and events
offsets          kept with the group's coordinator           offset_requests      the bytes, and what answers say
strategy         which assignors are offered, for groups of several clients; incompatibility: why there was none
assignors        who reads what                              subscription_format  what members tell one another
"""

from aiokwire.group.assignors import ASSIGNORS, Assignor, PartitionInfo
from aiokwire.group.auto import AutoMember
from aiokwire.group.classic import ClassicMember
from aiokwire.group.commit_gate import CommitGate
from aiokwire.group.decisions import look_interval
from aiokwire.group.membership import Host, Membership
from aiokwire.group.modern import ModernMember
from aiokwire.group.modern_states import ModernState
from aiokwire.group.offsets import GroupOffsets
from aiokwire.group.options import MemberOptions
from aiokwire.group.pulse import Beat, Pulse
from aiokwire.group.states import MemberEvent, MemberState
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
    "Beat",
    "ClassicMember",
    "CommitGate",
    "CoordinatorFound",
    "CoordinatorLost",
    "GroupEvent",
    "GroupOffsets",
    "Host",
    "LoopBlocked",
    "MemberEvent",
    "MemberOptions",
    "MemberState",
    "MemberStatus",
    "MemberSubscription",
    "Membership",
    "ModernMember",
    "ModernState",
    "PartitionInfo",
    "Pulse",
    "RebalanceEnded",
    "RebalanceStarted",
    "Strategy",
    "auto_assignors",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
    "look_interval",
]
