"""The counts of a worker's handlers, and its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from aiokwire.metrics import (
    CLIENT_ID,
    ERROR_TYPE,
    GROUP,
    KAFKA,
    LONG,
    OPERATION,
    SYSTEM,
    Histogram,
    Labels,
    Metric,
    Sample,
)

if TYPE_CHECKING:
    from aiokwire.worker.work_queue import HandlerLine

# Bounds of the sizes of batches.
SIZES: Final = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 5000.0, 10_000.0)

HANDLER: Final = "kafka.worker.handler"
ACTION: Final = "kafka.worker.action"
CIRCUIT: Final = "kafka.worker.circuit"

DURATION: Final = Metric(
    "messaging.process.duration",
    "histogram",
    "s",
    "Time of an attempt to handle a record, or a batch, by its outcome; its count without `error.type` is the number "
    "of records, or batches, that handlers have completed.",
    (SYSTEM, OPERATION, HANDLER, ERROR_TYPE),
    LONG,
)
BATCH: Final = Metric(
    "kafka.worker.batch.records",
    "histogram",
    "{message}",
    "Records of a call of a handler of batches, whatever its outcome; the sum is the number of records.",
    (HANDLER,),
    SIZES,
)
FAILURES: Final = Metric(
    "kafka.worker.failure",
    "counter",
    "{message}",
    'What followed attempts that failed: "retry", "retry-topic", "skip", "dead-letter", "stop", or "postpone" when '
    "their circuit had opened.",
    (HANDLER, ACTION),
)
IN_FLIGHT: Final = Metric(
    "kafka.worker.records.in.flight", "gauge", "{message}", "Records that are fetched and not finished."
)
ACTIVE: Final = Metric("kafka.worker.handlers.active", "gauge", "{handler}", "Handlers that run now.")
CONCURRENCY: Final = Metric("kafka.worker.handlers.limit", "gauge", "{handler}", "`concurrency`.")
CIRCUIT_OPEN: Final = Metric(
    "kafka.worker.circuit.open", "gauge", "{circuit}", "1 while a circuit is open or half-open, else 0.", (CIRCUIT,)
)
CIRCUIT_OPENINGS: Final = Metric(
    "kafka.worker.circuit.openings", "counter", "{opening}", "Times that a circuit has opened.", (CIRCUIT,)
)
PERIODIC: Final = Metric(
    "kafka.worker.periodic.duration",
    "histogram",
    "s",
    "Time of a run of a periodic handler, by its outcome.",
    (HANDLER, ERROR_TYPE),
    LONG,
)
PERIODIC_MISSED: Final = Metric(
    "kafka.worker.periodic.missed",
    "counter",
    "{run}",
    "Periods of a periodic handler without a run, because the one before was still running.",
    (HANDLER,),
)
METRICS: Final = (
    DURATION,
    BATCH,
    FAILURES,
    IN_FLIGHT,
    ACTIVE,
    CONCURRENCY,
    CIRCUIT_OPEN,
    CIRCUIT_OPENINGS,
    PERIODIC,
    PERIODIC_MISSED,
)

PROCESS: Final = "process"


class HandlerCounts:
    """Counts the outcomes of a handler's attempts. Executors and settlement call it on the loop."""

    __slots__ = ("_actions", "_completed", "_failed", "_sizes", "returned")

    def __init__(self) -> None:
        self._completed = DURATION.new_histogram()
        self.returned: Callable[[float], None] = self._completed.observe  # seconds until the handler returned
        self._failed: dict[str, Histogram] = {}  # by the type of the error
        self._actions: dict[str, int] = {}
        self._sizes: Histogram | None = None  # of a handler of batches

    def started(self, records: int) -> None:
        """A batch is about to be handled."""
        if self._sizes is None:
            self._sizes = BATCH.new_histogram()
        self._sizes.observe(records)

    def raised(self, error: BaseException, seconds: float) -> None:
        """The handler raised, or was interrupted."""
        kind = type(error).__name__
        if kind not in self._failed:
            self._failed[kind] = DURATION.new_histogram()
        self._failed[kind].observe(seconds)

    def followed(self, action: str, count: int = 1) -> None:
        """Count `count` failed records by the action that followed."""
        self._actions[action] = self._actions.get(action, 0) + count

    def samples(self, handler: str, labels: Labels) -> list[Sample]:
        """Return the metrics of the handler; from any thread."""
        found = [DURATION.sample(self._completed.read(), labels, KAFKA, PROCESS, handler)]
        for kind, histogram in list(self._failed.items()):
            found.append(DURATION.sample(histogram.read(), labels, KAFKA, PROCESS, handler, kind))
        if self._sizes is not None:
            found.append(BATCH.sample(self._sizes.read(), labels, handler))
        return found + [FAILURES.sample(count, labels, handler, one) for one, count in list(self._actions.items())]


class PeriodicCounts:
    """Counts the outcomes of one periodic handler's runs. Its task calls it on the loop."""

    __slots__ = ("_durations", "_missed")

    def __init__(self) -> None:
        self._missed = 0
        self._durations: dict[str | None, Histogram] = {}  # by the type of the error

    def left_out(self, periods: int) -> None:
        """Periods have passed without a run."""
        self._missed += periods

    def ended(self, seconds: float, error: BaseException | None = None) -> None:
        """A run has ended, by an error or without."""
        kind = None if error is None else type(error).__name__
        if kind not in self._durations:
            self._durations[kind] = PERIODIC.new_histogram()
        self._durations[kind].observe(seconds)

    def samples(self, handler: str, labels: Labels) -> list[Sample]:
        """Return the metrics of the handler; from any thread."""
        found = [PERIODIC_MISSED.sample(self._missed, labels, handler)]
        for kind, histogram in list(self._durations.items()):
            found.append(PERIODIC.sample(histogram.read(), labels, handler, *(() if kind is None else (kind,))))
        return found


def labels_of(client_id: str, group: str) -> dict[str, str]:
    """Return the labels of a worker's metrics."""
    return {CLIENT_ID: client_id, GROUP: group}


def samples_of(
    labels: Labels, lines: Iterable[HandlerLine], *, in_flight: int, active: int, concurrency: int
) -> list[Sample]:
    """Return the metrics of a worker, without those of its clients."""
    found = [
        IN_FLIGHT.sample(in_flight, labels),
        ACTIVE.sample(active, labels),
        CONCURRENCY.sample(concurrency, labels),
    ]
    for line in lines:
        found += line.counts.samples(line.handler.name, labels)
    return found
