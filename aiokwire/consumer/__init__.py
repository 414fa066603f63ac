"""Reading: the consumer, alone or as a member of a group.

consumer      what users hold            subscription  which partitions
reader        hand-over                  upkeep        positions and leaders, in the background
fetch_buffer  what was fetched           fetcher       the lanes that fetch
coordination  its side of the group          commits       what it commits, and when
listener      told of rebalances             in_hand       what the application has finished
batches       a batch in user's hands    _iterate      what runs per record
fetch_plan, fetch_responses, intake, positions, offset_reset, truncation: decisions, without I/O
"""

from aiokwire.consumer.batches import Batch, ConsumerRecord
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.consumer import Consumer
from aiokwire.consumer.errors import DeserializationError
from aiokwire.consumer.listener import RebalanceListener
from aiokwire.consumer.positions import TRANSITIONS, FetchEvent, FetchState

__all__ = [
    "TRANSITIONS",
    "Batch",
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "DeserializationError",
    "FetchEvent",
    "FetchState",
    "RebalanceListener",
]
