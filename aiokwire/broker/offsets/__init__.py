"""Committed offsets of consumer groups, kept in `__consumer_offsets` in Kafka's format.

The group coordinator stands on this: it decides who may commit, the store keeps what was committed.
"""

from aiokwire.broker.offsets.records import CommittedOffset
from aiokwire.broker.offsets.store import OFFSETS_TOPIC, OffsetStore

__all__ = ["OFFSETS_TOPIC", "CommittedOffset", "OffsetStore"]
