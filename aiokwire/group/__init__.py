"""What belongs to a group: the offsets that it committed, and its members' heartbeats. Used by the consumer.

offsets          kept with the group's coordinator      offset_requests  the bytes, and what answers say
pulse            heartbeats while the loop is blocked
"""

from aiokwire.group.offsets import GroupOffsets
from aiokwire.group.pulse import Beat, Pulse

__all__ = ["Beat", "GroupOffsets", "Pulse"]
