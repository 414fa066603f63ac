"""The consumer, alone or as a member of a group.

consumer         the public class               subscription       the assigned partitions
reader           delivers records               streams            several readers of one consumer
fetcher          tasks that send fetches        fetch_handler      applies a fetch response
fetch_plan       what to fetch next             fetch_session      incremental fetches (KIP-227)
fetch_responses  request and verdicts           fetch_buffer       fetched, not yet delivered
positions        state of one partition         position_updater   metadata, lookups, validation
offset_reset     applies the reset policy       parts              creates and connects components
commits          commits offsets                processed          what the application has finished
rebalance_handler  applies a rebalance          listener           the user's rebalance listener
health           why a partition waits          stall_monitor      reports stalled partitions
events           events of a consumer           hooks_adapter      calls hooks, publishes events
batches          a batch for the application    _iterate           code that runs per record
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiokwire.consumer.batches import Batch, ConsumerRecord
    from aiokwire.consumer.config import ConsumerConfig
    from aiokwire.consumer.consumer import Consumer
    from aiokwire.consumer.deserialization import DeserializationError
    from aiokwire.consumer.events import ConsumerEvent, PartitionEnd, PartitionResumed, PartitionStalled, PositionReset
    from aiokwire.consumer.health import ConsumerHealth, GroupHealth, PartitionHealth, Reason
    from aiokwire.consumer.listener import RebalanceListener
    from aiokwire.consumer.positions import TRANSITIONS, FetchEvent, FetchState
    from aiokwire.consumer.streams import RecordStream
    from aiokwire.events import EventStream, Throttled
    from aiokwire.group import CoordinatorFound, CoordinatorLost, LoopBlocked, RebalanceEnded, RebalanceStarted

__all__ = [
    "TRANSITIONS",
    "Batch",
    "Consumer",
    "ConsumerConfig",
    "ConsumerEvent",
    "ConsumerHealth",
    "ConsumerRecord",
    "CoordinatorFound",
    "CoordinatorLost",
    "DeserializationError",
    "EventStream",
    "FetchEvent",
    "FetchState",
    "GroupHealth",
    "LoopBlocked",
    "PartitionEnd",
    "PartitionHealth",
    "PartitionResumed",
    "PartitionStalled",
    "PositionReset",
    "Reason",
    "RebalanceEnded",
    "RebalanceListener",
    "RebalanceStarted",
    "RecordStream",
    "Throttled",
]

# The module of each name, loaded when the name is first used: a process that needs only the options, such as a Spark
# planner, does not load the consumer.
_HOMES = {
    "consumer.batches": ("Batch", "ConsumerRecord"),
    "consumer.config": ("ConsumerConfig",),
    "consumer.consumer": ("Consumer",),
    "consumer.deserialization": ("DeserializationError",),
    "consumer.events": ("ConsumerEvent", "PartitionEnd", "PartitionResumed", "PartitionStalled", "PositionReset"),
    "consumer.health": ("ConsumerHealth", "GroupHealth", "PartitionHealth", "Reason"),
    "consumer.listener": ("RebalanceListener",),
    "consumer.positions": ("TRANSITIONS", "FetchEvent", "FetchState"),
    "consumer.streams": ("RecordStream",),
    "events": ("EventStream", "Throttled"),
    "group": ("CoordinatorFound", "CoordinatorLost", "LoopBlocked", "RebalanceEnded", "RebalanceStarted"),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            value: object = getattr(importlib.import_module(f"aiokwire.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
