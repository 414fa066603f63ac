"""The counts of a producer, per batch, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiokwire.metrics import (
    CLIENT_ID,
    DESTINATION,
    DURATION,
    ERROR_TYPE,
    KAFKA,
    OPERATION,
    SYSTEM,
    Labels,
    Metric,
    Sample,
    type_of,
)

if TYPE_CHECKING:
    from aiokwire.producer._accumulator import Accumulator
    from aiokwire.producer._delivery import Batch
    from aiokwire.producer.buffer_pool import WaitingLine

SENT: Final = Metric(
    "messaging.client.sent.messages",
    "counter",
    "{message}",
    "Records that were acknowledged or, with `error.type`, failed.",
    (SYSTEM, OPERATION, DESTINATION, ERROR_TYPE),
)
QUEUE_TIME: Final = Metric(
    "kafka.producer.record.queue.time",
    "histogram",
    "s",
    "Time from the first record of a batch to its first request.",
)
BATCHES: Final = Metric("kafka.producer.batch", "counter", "{batch}", "Batches, at their first request.")
BATCH_BYTES: Final = Metric(
    "kafka.producer.batch.size",
    "counter",
    "By",
    "Bytes of these batches before compression: divided by `kafka.producer.batch`, how full batches are.",
)
BYTES: Final = Metric(
    "kafka.producer.byte", "counter", "By", "Bytes of acknowledged batches, as they were sent.", (DESTINATION,)
)
RETRIES: Final = Metric(
    "kafka.producer.record.retry", "counter", "{message}", "Records that were sent again.", (DESTINATION,)
)
SPLITS: Final = Metric(
    "kafka.producer.batch.split", "counter", "{batch}", "Batches that were split because a broker found them too large."
)
PENDING: Final = Metric(
    "kafka.producer.record.pending", "gauge", "{message}", "Records that are accepted and have no result."
)
OLDEST: Final = Metric("kafka.producer.record.age", "gauge", "s", "Time since the first record of the oldest batch.")
WAITING: Final = Metric(
    "kafka.producer.waiting.records", "gauge", "{message}", "Records that wait for room in the buffer."
)
BUFFER_USAGE: Final = Metric("kafka.producer.buffer.usage", "gauge", "By", "Bytes of `buffer_memory` in use.")
BUFFER_LIMIT: Final = Metric("kafka.producer.buffer.limit", "gauge", "By", "`buffer_memory`.")
METRICS: Final = (
    SENT,
    QUEUE_TIME,
    BATCHES,
    BATCH_BYTES,
    BYTES,
    RETRIES,
    SPLITS,
    PENDING,
    OLDEST,
    WAITING,
    BUFFER_USAGE,
    BUFFER_LIMIT,
)

SEND: Final = "send"


class _Topic:
    """The counts of one topic."""

    __slots__ = ("bytes", "failed", "records", "retried")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.retried = 0
        self.failed: dict[str, int] = {}  # records, by the error's type


class ProducerCounts:
    """Counts the results of a producer's batches. Its parts call it on its loop."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self._queue_time = QUEUE_TIME.new_histogram()
        self._duration = DURATION.new_histogram()
        self._sent = 0  # batches
        self._size = 0  # bytes
        self._splits = 0

    def left(self, batch: Batch, now: float) -> None:
        """A batch is sent for the first time."""
        self._sent += 1
        self._size += batch.size
        self._queue_time.observe(now - batch.created)

    def delivered(self, batch: Batch, size: int, now: float) -> None:
        """A batch of `size` bytes was acknowledged."""
        topic = self._topics.get(batch.topic) or self._add(batch.topic)
        topic.records += batch.count - batch.cancelled
        topic.bytes += size
        self._duration.observe(now - batch.created)

    def retried(self, batch: Batch) -> None:
        """A batch is queued again."""
        topic = self._topics.get(batch.topic) or self._add(batch.topic)
        topic.retried += batch.remaining

    def failed(self, batch: Batch, error: Exception) -> None:
        """A batch failed permanently."""
        topic = self._topics.get(batch.topic) or self._add(batch.topic)
        kind = type_of(error)
        topic.failed[kind] = topic.failed.get(kind, 0) + batch.remaining

    def split(self) -> None:
        """A batch was too large for its broker."""
        self._splits += 1

    def _add(self, name: str) -> _Topic:
        topic = self._topics[name] = _Topic()
        return topic

    def samples(self, labels: Labels) -> list[Sample]:
        """Return the metrics that are counted; from any thread."""
        found = [
            DURATION.sample(self._duration.read(), labels, KAFKA, SEND),
            QUEUE_TIME.sample(self._queue_time.read(), labels),
            BATCHES.sample(self._sent, labels),
            BATCH_BYTES.sample(self._size, labels),
            SPLITS.sample(self._splits, labels),
        ]
        for name, topic in list(self._topics.items()):
            found.append(SENT.sample(topic.records, labels, KAFKA, SEND, name))
            for kind, records in list(topic.failed.items()):
                found.append(SENT.sample(records, labels, KAFKA, SEND, name, kind))
            found.append(BYTES.sample(topic.bytes, labels, name))
            found.append(RETRIES.sample(topic.retried, labels, name))
        return found


def samples_of(
    client_id: str, counts: ProducerCounts, accumulator: Accumulator, line: WaitingLine, now: float | None
) -> list[Sample]:
    """Return the metrics of a producer, without those of its client. `now`: None before it runs."""
    labels = {CLIENT_ID: client_id}
    live = list(accumulator.live)
    found = [
        PENDING.sample(sum(batch.remaining for batch in live), labels),
        WAITING.sample(len(line), labels),
        BUFFER_USAGE.sample(accumulator.used, labels),
        BUFFER_LIMIT.sample(accumulator.limit, labels),
    ]
    if now is not None:
        oldest = min((batch.created for batch in live if batch.remaining), default=now)
        found.append(OLDEST.sample(max(0.0, now - oldest), labels))
    return found + counts.samples(labels)
