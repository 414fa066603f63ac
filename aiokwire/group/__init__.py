"""What belongs to a group: the offsets that it committed, and who reads what. Used by the consumer.

offsets          kept with the group's coordinator      offset_requests  the bytes, and what answers say
assignors        who reads what                         subscription_format  what members tell one another
"""

from aiokwire.group.offsets import GroupOffsets

__all__ = ["GroupOffsets"]
