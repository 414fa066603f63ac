"""The events of a consumer: plain values.

Published by `ConsumerHooks` and `StallMonitor`, and created only while a stream listens.
"""

from __future__ import annotations

import dataclasses
from typing import Final, TypeAlias

from aiokwire.consumer.health import Reason
from aiokwire.events import Throttled
from aiokwire.group import GroupEvent
from aiokwire.types import TopicPartition


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionStalled:
    """A partition makes no progress although it should. Reported once, until it has resumed."""

    partition: TopicPartition
    seconds: float
    """Since its last progress."""
    reason: Reason
    detail: str
    position: int | None
    lag: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionResumed:
    """A partition that was reported as stalled makes progress, or is not expected to make any."""

    partition: TopicPartition
    seconds: float
    """Without progress."""


@dataclasses.dataclass(frozen=True, slots=True)
class PositionReset:
    """A position was set by a lookup: the records in between are skipped, or delivered again."""

    partition: TopicPartition
    before: int | None
    """None: there was none."""
    after: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionEnd:
    """All records that the last fetch found were delivered, or are by the call now returning."""

    partition: TopicPartition
    offset: int


ConsumerEvent: TypeAlias = PartitionStalled | PartitionResumed | PositionReset | PartitionEnd | Throttled | GroupEvent


# Left out of a stream by default: a busy partition reaches its end many times a second.
WITHOUT_ENDS: Final = (PartitionEnd,)
