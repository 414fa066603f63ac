"""The health and the metrics of a relay."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from aiokwire.metrics import Labels, Metric, Sample
from aiokwire.producer import ProducerHealth

TABLE: Final = "kafka.outbox.table"

LEADER: Final = Metric("kafka.outbox.leader", "gauge", "1", "1 if this relay sends, 0 if another one does.", (TABLE,))
BACKLOG: Final = Metric(
    "kafka.outbox.backlog", "gauge", "{message}", "Rows that wait to be sent, counted up to 100,000.", (TABLE,)
)
AGE: Final = Metric("kafka.outbox.age", "gauge", "s", "Age of the oldest row that waits to be sent.", (TABLE,))
REJECTED: Final = Metric(
    "kafka.outbox.rejected", "gauge", "{message}", "Rows that Kafka rejected; their `error` has the reason.",
    (TABLE,),
)  # fmt: skip
SENT: Final = Metric("kafka.outbox.sent", "counter", "{message}", "Rows that were acknowledged.", (TABLE,))
METRICS: Final = (LEADER, BACKLOG, AGE, REJECTED, SENT)


@dataclasses.dataclass(frozen=True, slots=True)
class OutboxHealth:
    """A relay at one moment."""

    running: bool
    is_leader: bool
    """Whether this relay sends. The backlog of one that does not is unknown, and counts as 0."""
    backlog: int
    """Rows that wait, up to 100,000, as measured last."""
    oldest: float | None
    """Seconds since the oldest of them was added."""
    rejected: int
    """Rows that Kafka rejected."""
    blocked: Mapping[str, str]
    """Topics that cannot be sent to at present, and why."""
    database_error: str
    """Why the database is not reached; empty while it is."""
    kafka_error: str
    """Why there is no producer; empty while there is one."""
    producer: ProducerHealth | None
    stalled_after: float
    """Seconds that a row may wait."""

    @property
    def is_stalled(self) -> bool:
        """Whether a row has waited for too long."""
        return self.oldest is not None and self.oldest >= self.stalled_after

    @property
    def ok(self) -> bool:
        """Whether it runs, uses its database, and sends in time. While Kafka is down, rows may wait
        for `stalled_after`."""
        return self.running and not self.database_error and not self.kafka_error and not self.is_stalled

    @property
    def has_ended(self) -> bool:
        """Whether only a new relay sends again."""
        return not self.running

    @property
    def reasons(self) -> list[str]:
        """Why it is not ok, one sentence each."""
        found = [] if self.running else ["the relay has ended"]
        if self.database_error:
            found.append(f"the database cannot be used: {self.database_error}")
        if self.kafka_error:
            found.append(f"Kafka is not reached: {self.kafka_error}")
        if self.is_stalled:
            found.append(f"{self.backlog} row(s) wait to be sent, the oldest for {self.oldest:.0f} s")
            found += [f"cannot send to topic {topic!r}: {error}" for topic, error in self.blocked.items()]
            found += [] if self.producer is None else self.producer.reasons
        return found


def samples_of(health: OutboxHealth, sent: int, labels: Labels, table: str) -> list[Sample]:
    """Return the metrics of a relay, without those of its producer."""
    return [
        LEADER.sample(int(health.is_leader), labels, table),
        BACKLOG.sample(health.backlog, labels, table),
        AGE.sample(health.oldest or 0.0, labels, table),
        REJECTED.sample(health.rejected, labels, table),
        SENT.sample(sent, labels, table),
    ]
