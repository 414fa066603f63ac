"""What belongs to a group: its members, the offsets that it committed, and who reads what. Used by the consumer.

membership       what consumer and group ask of each other   classic   a member, by the classic protocol
states, decisions, generation, leading, heartbeats, link, options, classic_requests: its parts
pulse            heartbeats while the loop is blocked        commit_gate          commits and joins take turns
offsets          kept with the group's coordinator           offset_requests      the bytes, and what answers say
assignors        who reads what                              subscription_format  what members tell one another
"""

from aiokwire.group.assignors import ASSIGNORS, Assignor
from aiokwire.group.classic import ClassicMember
from aiokwire.group.commit_gate import CommitGate
from aiokwire.group.membership import Host, Membership
from aiokwire.group.offsets import GroupOffsets
from aiokwire.group.options import MemberOptions
from aiokwire.group.pulse import Beat, Pulse
from aiokwire.group.states import MemberEvent, MemberState

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "Beat",
    "ClassicMember",
    "CommitGate",
    "GroupOffsets",
    "Host",
    "MemberEvent",
    "MemberOptions",
    "MemberState",
    "Membership",
    "Pulse",
]
