"""What belongs to a group: the offsets that it committed, and who reads what. Used by the consumer.

offsets          kept with the group's coordinator      offset_requests  the bytes, and what answers say
assignors        who reads what                         subscription_format  what members tell one another
"""

from aiokwire.group.assignors import ASSIGNORS, Assignor, PartitionInfo
from aiokwire.group.offsets import GroupOffsets
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
    "GroupOffsets",
    "MemberSubscription",
    "PartitionInfo",
    "decode_assignment",
    "decode_subscription",
    "encode_assignment",
    "encode_subscription",
]
