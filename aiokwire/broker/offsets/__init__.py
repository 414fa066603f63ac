"""Committed offsets of consumer groups, kept in `__consumer_offsets` in Kafka's format.

The group coordinator uses it: it decides which clients may commit, the store keeps the offsets.
"""

from aiokwire.broker.offsets.records import CommittedOffset
from aiokwire.broker.offsets.store import OFFSETS_TOPIC, OffsetStore

__all__ = ["OFFSETS_TOPIC", "CommittedOffset", "OffsetStore"]
