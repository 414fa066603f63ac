"""What happens to a producer, for those who listen: values. `Producer.events()` streams them.

Made per batch, request or incident, never per record, and only while somebody listens.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from aiokwire.events import Events, EventStream, Throttled

if TYPE_CHECKING:
    from aiokwire.producer._accumulator import Accumulator
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer.buffer_pool import WaitingLine


@dataclasses.dataclass(frozen=True, slots=True)
class BatchFailed:
    """A batch was given up: its records are not acknowledged, and are not sent again."""

    topic: str
    partition: int
    """-1 when the topic's metadata never came."""
    records: int
    error: Exception


@dataclasses.dataclass(frozen=True, slots=True)
class BufferFull:
    """Records wait for room in `buffer_memory`: the brokers take them more slowly than they come."""

    memory_in_use: int
    """Bytes."""
    waiting: int
    """Records that wait."""


@dataclasses.dataclass(frozen=True, slots=True)
class BufferFree:
    """No record waits for room any more, and at least half of `buffer_memory` is free."""

    seconds: float
    """How long it was full."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProducerIdChanged:
    """The producer writes under another producer id, or without transactions another epoch: it has just started, the
    broker forgot it, or a numbered batch was given up (KIP-360)."""

    producer_id: int
    epoch: int


@dataclasses.dataclass(frozen=True, slots=True)
class LeadersChanged:
    """Partitions of a topic have other leaders."""

    topic: str
    leaders: dict[int, int]
    """The new node id of each partition that moved; -1 while it has no leader."""


@dataclasses.dataclass(frozen=True, slots=True)
class TransactionAbortRequired:
    """The open transaction cannot be committed: leaving its block aborts it."""

    transactional_id: str
    error: Exception


@dataclasses.dataclass(frozen=True, slots=True)
class ProducerFailed:
    """The producer cannot continue: a newer instance fenced it (FencedError), the outcome of a transaction is not known
    (TransactionFailed), or a task of its client failed (ClosedError)."""

    error: Exception


ProducerEvent: TypeAlias = (
    BatchFailed
    | BufferFull
    | BufferFree
    | ProducerIdChanged
    | LeadersChanged
    | TransactionAbortRequired
    | ProducerFailed
    | Throttled
)


def report_failed(events: Events[ProducerEvent], batch: Batch) -> None:
    """A batch was given up."""
    if events.wanted:
        assert batch.error is not None
        events.publish(BatchFailed(batch.topic, batch.partition, batch.remaining, batch.error))


class Watch:
    """Reports when a producer's buffer is full and free again, and each throttle; on its loop."""

    def __init__(
        self, accumulator: Accumulator, line: WaitingLine, now: Callable[[], float], events: Events[ProducerEvent]
    ) -> None:
        """`now`: the loop's clock."""
        self._accumulator = accumulator
        self._line = line
        self._now = now
        self._events = events
        self._full_since: float | None = None  # as reported
        self._throttled_until: dict[int, float] = {}  # as reported, by node

    def look(self) -> None:
        """Report whether the buffer is full. It counts as free again at half its size, so that the two do not alternate
        with every answer."""
        if not self._events.wanted:
            return
        waiting, used = len(self._line), self._accumulator.used
        if self._full_since is None:
            if waiting:
                self._full_since = self._now()
                self._events.publish(BufferFull(used, waiting))
        elif not waiting and used * 2 <= self._accumulator.limit:
            self._events.publish(BufferFree(self._now() - self._full_since))
            self._full_since = None

    def throttled(self, node_id: int, until: float, now: float) -> None:
        """Batches wait because of a broker's quota; reported once for each of its demands."""
        if self._events.wanted and self._throttled_until.get(node_id, 0.0) < until:
            self._throttled_until[node_id] = until
            self._events.publish(Throttled(node_id, until - now))


__all__ = [
    "BatchFailed",
    "BufferFree",
    "BufferFull",
    "EventStream",
    "Events",
    "LeadersChanged",
    "ProducerEvent",
    "ProducerFailed",
    "ProducerIdChanged",
    "Throttled",
    "TransactionAbortRequired",
    "Watch",
    "report_failed",
]
