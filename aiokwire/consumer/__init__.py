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

from typing import TYPE_CHECKING

from aiokwire._lazy import lazy_names

if TYPE_CHECKING:
    from aiokwire.consumer.batches import Batch as Batch, ConsumerRecord as ConsumerRecord
    from aiokwire.consumer.config import ConsumerConfig as ConsumerConfig, ConsumerOptions as ConsumerOptions
    from aiokwire.consumer.consumer import Consumer as Consumer
    from aiokwire.consumer.deserialization import DeserializationError as DeserializationError
    from aiokwire.consumer.events import (
        ConsumerEvent as ConsumerEvent,
        PartitionEnd as PartitionEnd,
        PartitionResumed as PartitionResumed,
        PartitionStalled as PartitionStalled,
        PositionReset as PositionReset,
    )
    from aiokwire.consumer.health import (
        ConsumerHealth as ConsumerHealth,
        GroupHealth as GroupHealth,
        PartitionHealth as PartitionHealth,
        Reason as Reason,
    )
    from aiokwire.consumer.listener import RebalanceListener as RebalanceListener
    from aiokwire.consumer.positions import (
        TRANSITIONS as TRANSITIONS,
        FetchEvent as FetchEvent,
        FetchState as FetchState,
    )
    from aiokwire.consumer.streams import RecordStream as RecordStream
    from aiokwire.events import EventStream as EventStream, Throttled as Throttled
    from aiokwire.group import (
        CoordinatorFound as CoordinatorFound,
        CoordinatorLost as CoordinatorLost,
        LoopBlocked as LoopBlocked,
        RebalanceEnded as RebalanceEnded,
        RebalanceStarted as RebalanceStarted,
    )
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {
            "consumer.batches": "Batch ConsumerRecord",
            "consumer.config": "ConsumerConfig ConsumerOptions",
            "consumer.consumer": "Consumer",
            "consumer.deserialization": "DeserializationError",
            "consumer.events": "ConsumerEvent PartitionEnd PartitionResumed PartitionStalled PositionReset",
            "consumer.health": "ConsumerHealth GroupHealth PartitionHealth Reason",
            "consumer.listener": "RebalanceListener",
            "consumer.positions": "TRANSITIONS FetchEvent FetchState",
            "consumer.streams": "RecordStream",
            "events": "EventStream Throttled",
            "group": "CoordinatorFound CoordinatorLost LoopBlocked RebalanceEnded RebalanceStarted",
        },
    )
