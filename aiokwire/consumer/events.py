"""What happens to a consumer, for whoever listens: values, and the streams that carry them. No I/O.

Published by `Plug`; nothing is made while nobody listens.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections import deque
from typing import Final, Self

import anyio

from aiokwire.consumer.health import Reason
from aiokwire.group import CoordinatorFound, CoordinatorLost, GroupEvent, LoopBlocked, RebalanceEnded, RebalanceStarted
from aiokwire.types import TopicPartition

# What a stream keeps for a listener that does not come.
LIMIT: Final = 1000


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


@dataclasses.dataclass(frozen=True, slots=True)
class Throttled:
    """A broker demands silence (KIP-219): nothing is fetched from it for so long."""

    node_id: int
    seconds: float


ConsumerEvent = PartitionStalled | PartitionResumed | PositionReset | PartitionEnd | Throttled | GroupEvent


class Events:
    """The listeners of one consumer."""

    def __init__(self) -> None:
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()
        self._closed = False

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return bool(self._streams)

    def listen(self, *, ends: bool, limit: int) -> EventStream:
        """A new listener; it is forgotten when it is dropped."""
        stream = EventStream(ends=ends, limit=limit)
        if self._closed:
            stream.close()
        else:
            self._streams.add(stream)
        return stream

    def publish(self, event: ConsumerEvent) -> None:
        for stream in list(self._streams):
            stream.put(event)

    def close(self) -> None:
        """Nothing more happens."""
        self._closed = True
        for stream in list(self._streams):
            stream.close()
        self._streams.clear()


class EventStream:
    """What has happened since it was made, in order. Ends when the consumer is closed, once all was handed over.

    Keeps so many events for a listener that is busy: of more, the oldest are dropped, and counted in `dropped`.
    """

    def __init__(self, *, ends: bool, limit: int) -> None:
        self.dropped = 0
        self._ends = ends
        self._kept: deque[ConsumerEvent] = deque(maxlen=limit)
        self._arrived = anyio.Event()
        self._closed = False

    def put(self, event: ConsumerEvent) -> None:
        """For the consumer: this happened."""
        if self._closed or (not self._ends and isinstance(event, PartitionEnd)):
            return
        if len(self._kept) == self._kept.maxlen:
            self.dropped += 1
        self._kept.append(event)
        self._wake()

    def close(self) -> None:
        """Listen no more; what was kept can still be taken."""
        self._closed = True
        self._wake()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerEvent:
        while not self._kept:
            if self._closed:
                raise StopAsyncIteration
            await self._arrived.wait()
        return self._kept.popleft()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = anyio.Event()


__all__ = [
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
