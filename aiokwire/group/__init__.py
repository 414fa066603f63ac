"""What belongs to a group: the offsets that it committed. Used by the consumer.

offsets          kept with the group's coordinator      offset_requests  the bytes, and what answers say
"""

from aiokwire.group.offsets import GroupOffsets

__all__ = ["GroupOffsets"]
