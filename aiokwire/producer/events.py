"""The events of a producer, which `Producer.events()` streams, and its health at one moment.

Events are created per batch, request or incident, never per record, and only for a listener.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from aiokwire.events import Events, Throttled

if TYPE_CHECKING:
    from aiokwire.producer._accumulator import Accumulator
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer.buffer_pool import WaitingLine


@dataclasses.dataclass(frozen=True, slots=True)
class BatchFailed:
    """A batch failed: its records are not acknowledged and not sent again."""

    topic: str
    partition: int
    """-1 without the topic's metadata."""
    records: int
    error: Exception


@dataclasses.dataclass(frozen=True, slots=True)
class BufferFull:
    """Records wait for `buffer_memory`: the program sends faster than the brokers acknowledge."""

    memory_in_use: int
    """Bytes."""
    waiting: int
    """The number of waiting records."""


@dataclasses.dataclass(frozen=True, slots=True)
class BufferFree:
    """No record waits for room, and at least half of `buffer_memory` is free."""

    seconds: float
    """How long the buffer was full."""


@dataclasses.dataclass(frozen=True, slots=True)
class ProducerIdChanged:
    """The producer has another producer id, or without transactions another epoch: it has just
    started, the broker forgot it, or a numbered batch failed (KIP-360)."""

    producer_id: int
    epoch: int


@dataclasses.dataclass(frozen=True, slots=True)
class LeadersChanged:
    """Partitions of a topic have other leaders, to which their batches are sent now."""

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
    """The producer cannot continue: a newer instance fenced it (FencedError), the outcome of a
    transaction is unknown (TransactionFailed), or a task of its client failed (ClosedError)."""

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


@dataclasses.dataclass(frozen=True, slots=True)
class ProducerHealth:
    """A producer at one moment, for dashboards and liveness checks; it costs no request."""

    records: int
    """Records accepted, and neither acknowledged nor failed."""
    waiting: int
    """Records that wait for room in the buffer."""
    memory_in_use: int
    """Bytes of `buffer_memory`."""
    oldest: float | None
    """Seconds since the oldest batch got its first record; None while nothing is buffered."""
    last_error: Exception | None
    """The last error of the oldest buffered batch that has one: the reason for its retry."""
    running: bool
    """Started, and neither closed nor failed."""

    @property
    def ok(self) -> bool:
        """Whether it runs, has room, and no buffered batch has an error."""
        return self.running and not self.waiting and self.last_error is None

    @property
    def has_ended(self) -> bool:
        """Whether only a new producer sends again."""
        return not self.running

    @property
    def reasons(self) -> list[str]:
        """Why it is not ok, one sentence each."""
        found = [] if self.running else ["the producer has ended"]
        if self.waiting:
            used = f"{self.memory_in_use} bytes in use"
            found.append(f"{self.waiting} record(s) wait for room in the buffer ({used})")
        if self.last_error is not None:
            found.append(f"records are retried: {self.last_error}")
        return found


def report_failed(events: Events[ProducerEvent], batch: Batch) -> None:
    """Report a batch that failed."""
    if events.wanted:
        assert batch.error is not None
        events.publish(BatchFailed(batch.topic, batch.partition, batch.remaining, batch.error))


class Watch:
    """Reports when a producer's buffer is full and free again, and each throttle; on its loop."""

    def __init__(
        self, accumulator: Accumulator, line: WaitingLine, now: Callable[[], float], events: Events[ProducerEvent]
    ) -> None:
        self._accumulator = accumulator
        self._line = line
        self._now = now
        self.events = events
        self._full_since: float | None = None  # as reported
        self._throttled_until: dict[int, float] = {}  # as reported, by node

    def look(self) -> None:
        """Report whether the buffer is full. It is free again at half its size, so that the two
        events do not alternate with every response. Called while `events` are wanted."""
        waiting, used = len(self._line), self._accumulator.used
        if self._full_since is None:
            if waiting:
                self._full_since = self._now()
                self.events.publish(BufferFull(used, waiting))
        elif not waiting and used * 2 <= self._accumulator.limit:
            self.events.publish(BufferFree(self._now() - self._full_since))
            self._full_since = None

    def throttled(self, node_id: int, until: float, now: float) -> None:
        """Report that a broker's quota delays batches, once per throttle."""
        if self.events.wanted and self._throttled_until.get(node_id, 0.0) < until:
            self._throttled_until[node_id] = until
            self.events.publish(Throttled(node_id, until - now))
