"""The counts of a consumer, per topic, and its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiokwire.clock import wall_ms
from aiokwire.metrics import (
    CLIENT_ID,
    DESTINATION,
    DURATION,
    GROUP,
    KAFKA,
    LONG,
    OPERATION,
    PARTITION,
    SYSTEM,
    Distribution,
    Labels,
    Metric,
    Sample,
)

if TYPE_CHECKING:
    from aiokwire.consumer.parts import ConsumerParts
    from aiokwire.consumer.positions import PartitionState

CONSUMED: Final = Metric(
    "messaging.client.consumed.messages",
    "counter",
    "{message}",
    "Records that were delivered to the application.",
    (SYSTEM, OPERATION, DESTINATION),
)
BYTES: Final = Metric(
    "kafka.consumer.fetch.manager.bytes.consumed",
    "counter",
    "By",
    "Bytes of batches that were delivered to the end, as they were fetched.",
    (DESTINATION,),
)
END_TO_END: Final = Metric(
    "kafka.consumer.record.e2e.latency",
    "histogram",
    "s",
    "Time from the timestamp of a record until the application has taken it: the last one of each fetch that is "
    "delivered, and of about one fetch at a time while the application is behind.",
    (DESTINATION,),
    LONG,
)
RESETS: Final = Metric(
    "kafka.consumer.position.reset",
    "counter",
    "{reset}",
    "Positions that were lost and set by `auto_offset_reset`: records are skipped or delivered again.",
    (DESTINATION,),
)
LAG: Final = Metric(
    "kafka.consumer.fetch.manager.records.lag",
    "gauge",
    "{message}",
    "Offsets from the position to the end of the partition, as of the last fetch.",
    (DESTINATION, PARTITION),
)
FETCH_LATENCY: Final = Metric(
    "kafka.consumer.fetch.manager.fetch.latency",
    "histogram",
    "s",
    "Time from a fetch to its response, which the broker delays for up to `fetch_max_wait_ms` without records.",
)
ASSIGNED: Final = Metric(
    "kafka.consumer.coordinator.assigned.partitions", "gauge", "{partition}", "Partitions that are assigned."
)
STALLED: Final = Metric(
    "kafka.consumer.stalled.partitions",
    "gauge",
    "{partition}",
    "Assigned partitions without progress for `stalled_after_ms`; `health()` names the reasons.",
)
BUFFER_USAGE: Final = Metric(
    "kafka.consumer.buffer.usage", "gauge", "By", "Bytes of `fetch_memory` that hold records or are reserved."
)
BUFFER_LIMIT: Final = Metric("kafka.consumer.buffer.limit", "gauge", "By", "`fetch_memory`.")
POLLS: Final = Metric(
    "kafka.consumer.poll",
    "counter",
    "{poll}",
    "Requests of the application for records; `async for` makes one per batch. Its rate is the inverse of the poll "
    "interval.",
)
LAST_POLL: Final = Metric(
    "kafka.consumer.last.poll.seconds.ago",
    "gauge",
    "s",
    "Time since the application was last seen to ask for records, which is checked every few seconds; 0 while it "
    "waits for them.",
)
METRICS: Final = (
    CONSUMED,
    BYTES,
    END_TO_END,
    RESETS,
    LAG,
    FETCH_LATENCY,
    ASSIGNED,
    STALLED,
    BUFFER_USAGE,
    BUFFER_LIMIT,
    POLLS,
    LAST_POLL,
)

POLL: Final = "poll"
COMMIT: Final = "commit"


class TopicCounts:
    """Counts the delivered records of one topic. The consumer's parts call it on its loop."""

    __slots__ = ("_end_to_end", "_records", "_resets", "_size")

    def __init__(self) -> None:
        self._records = 0
        self._size = 0  # bytes
        self._resets = 0
        self._end_to_end = END_TO_END.new_histogram()

    def delivered(self, records: int, size: int) -> None:
        """Records were delivered; `size` of their batch, once it is finished."""
        self._records += records
        self._size += size

    def observe_age(self, timestamp: int) -> None:
        """A record of this timestamp (milliseconds) was delivered; -1: it has none."""
        if timestamp >= 0:
            self._end_to_end.observe(max(0.0, (wall_ms() - timestamp) / 1000))

    def reset(self) -> None:
        """A position was lost and set by the policy."""
        self._resets += 1

    def samples(self, name: str, under_way: int, labels: Labels) -> list[Sample]:
        """Return the metrics of the topic; `under_way`: records delivered of unfinished batches."""
        return [
            CONSUMED.sample(self._records + under_way, labels, KAFKA, POLL, name),
            BYTES.sample(self._size, labels, name),
            END_TO_END.sample(self._end_to_end.read(), labels, name),
            RESETS.sample(self._resets, labels, name),
        ]


class CommitCounts:
    """The durations of a consumer's commits, by outcome."""

    def __init__(self) -> None:
        self._durations = {"": DURATION.new_histogram()}  # by the type of the error

    def ended(self, seconds: float, error: str = "") -> None:
        """A commit has ended, with the type of an error or without one."""
        if error not in self._durations:
            self._durations[error] = DURATION.new_histogram()
        self._durations[error].observe(seconds)

    def samples(self, labels: Labels) -> list[Sample]:
        """Return the metric; from any thread."""
        return [
            DURATION.sample(histogram.read(), labels, KAFKA, COMMIT, *([error] if error else []))
            for error, histogram in list(self._durations.items())
        ]


def labels_of(parts: ConsumerParts) -> dict[str, str]:
    """Return the labels of all metrics of a consumer."""
    labels = {CLIENT_ID: parts.config.client_id}
    return labels if parts.config.group_id is None else {**labels, GROUP: parts.config.group_id}


def samples_of(parts: ConsumerParts, stalled: int) -> list[Sample]:
    """Return the metrics of a consumer without those of its client, commits and membership; from
    any thread."""
    labels = labels_of(parts)
    states = list(parts.subscription.states.values())
    found = [
        ASSIGNED.sample(len(states), labels),
        STALLED.sample(stalled, labels),
        BUFFER_USAGE.sample(parts.fetcher.in_use, labels),
        BUFFER_LIMIT.sample(parts.config.fetch_memory, labels),
        POLLS.sample(parts.reader.processed.calls, labels),
        FETCH_LATENCY.sample(_fetch_latency(parts), labels),
    ]
    ago = parts.client.elapsed_since(parts.reader.processed.last_progress)
    if ago is not None:
        found.append(LAST_POLL.sample(0.0 if parts.reader.buffer.is_awaited else ago, labels))
    under_way: dict[str, int] = {}
    for state in states:
        topic, partition = state.tp
        under_way[topic] = under_way.get(topic, 0) + _taken(state)
        lag = _lag(state)
        if lag is not None:
            found.append(LAG.sample(lag, labels, topic, str(partition)))
    for topic, counts in list(parts.subscription.counts.items()):
        found += counts.samples(topic, under_way.get(topic, 0), labels)
    return found


def _fetch_latency(parts: ConsumerParts) -> Distribution:
    found = FETCH_LATENCY.new_histogram().read()
    for one in parts.client.nodes.counts.latencies("FetchRequest").values():
        found = found.plus(one)
    return found


def _taken(state: PartitionState) -> int:
    """Return the number of records that were delivered of an unfinished batch."""
    try:
        first = state.chunks[0]
    except IndexError:
        return 0
    return first.count - first.remaining if first.loaded else 0


def _lag(state: PartitionState) -> int | None:
    """Return the lag; None if it is unknown, or if the loop's thread just emptied the buffer."""
    try:
        return state.lag
    except IndexError:
        return None
