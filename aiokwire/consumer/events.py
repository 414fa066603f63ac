"""What happens to a consumer, for whoever listens: values. No I/O.

Published by `ConsumerHooks`; nothing is made while nobody listens.
"""

from __future__ import annotations

import dataclasses
from typing import Final, TypeAlias

from aiokwire.consumer.health import Reason
from aiokwire.events import LIMIT, Events, EventStream, Throttled
from aiokwire.group import CoordinatorFound, CoordinatorLost, GroupEvent, LoopBlocked, RebalanceEnded, RebalanceStarted
from aiokwire.types import TopicPartition


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionStalled:
    """A partition makes no progress though it should: told once, and again after it has gone on."""

    partition: TopicPartition
    seconds: float
    """For so long."""
    reason: Reason
    detail: str
    position: int | None
    lag: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionResumed:
    """A partition that was told to be stalled goes on, or has no reason to any more."""

    partition: TopicPartition
    seconds: float
    """It had stood for so long."""


@dataclasses.dataclass(frozen=True, slots=True)
class PositionReset:
    """A position was looked up instead of followed: what lies between is skipped, or read again."""

    partition: TopicPartition
    before: int | None
    """None: there was none."""
    after: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionEnd:
    """All that a partition had when it was last fetched is handed over, or is by the call that is just returning."""

    partition: TopicPartition
    offset: int


ConsumerEvent: TypeAlias = PartitionStalled | PartitionResumed | PositionReset | PartitionEnd | Throttled | GroupEvent


# What is left out unless it is asked for: a busy partition comes to its end many times a second.
WITHOUT_ENDS: Final = (PartitionEnd,)


__all__ = [
    "LIMIT",
    "WITHOUT_ENDS",
    "ConsumerEvent",
    "CoordinatorFound",
    "CoordinatorLost",
    "EventStream",
    "Events",
    "LoopBlocked",
    "PartitionEnd",
    "PartitionResumed",
    "PartitionStalled",
    "PositionReset",
    "RebalanceEnded",
    "RebalanceStarted",
    "Throttled",
]
