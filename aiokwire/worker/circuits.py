"""The circuits of a worker: pause the partitions of their handlers, and report state changes."""

from __future__ import annotations

import dataclasses
import logging
from typing import TypeAlias

from aiokwire.clock import loop_time
from aiokwire.events import Events
from aiokwire.metrics import Labels, Sample
from aiokwire.types import TopicPartition
from aiokwire.worker.circuit_breaker import Circuit, CircuitBreaker, CircuitState
from aiokwire.worker.dead_letters import summary_of
from aiokwire.worker.delayed_records import PartitionPauses
from aiokwire.worker.metrics import CIRCUIT_OPEN, CIRCUIT_OPENINGS
from aiokwire.worker.work_queue import WorkQueue

logger: logging.Logger = logging.getLogger("aiokwire.worker")


@dataclasses.dataclass(frozen=True, slots=True)
class CircuitOpened:
    """A circuit has opened: its handlers are not called, and their partitions are not read."""

    circuit: str
    handlers: tuple[str, ...]
    reason: str
    error: BaseException
    """The last failure."""
    pause: float
    """Seconds until the first probe calls."""


@dataclasses.dataclass(frozen=True, slots=True)
class CircuitClosed:
    """A circuit has closed: its handlers are called again."""

    circuit: str
    handlers: tuple[str, ...]
    seconds: float
    """Since it opened."""


WorkerEvent: TypeAlias = CircuitOpened | CircuitClosed


class Circuits:
    """All circuits of a worker, one for each `CircuitBreaker` object."""

    def __init__(self, group: str, queue: WorkQueue, pauses: PartitionPauses, events: Events[WorkerEvent]) -> None:
        self._group = group
        self._queue = queue
        self._pauses = pauses
        self._events = events
        self._circuits: dict[CircuitBreaker, Circuit] = {}
        self._handlers: dict[Circuit, list[str]] = {}

    def of(self, breaker: CircuitBreaker, handler: str) -> Circuit:
        """Return the circuit of a breaker, and count one more handler."""
        circuit = self._circuits.get(breaker)
        if circuit is None:
            circuit = self._circuits[breaker] = Circuit(breaker, breaker.name or handler, self)
        self._handlers.setdefault(circuit, []).append(handler)
        return circuit

    def assigned(self, partitions: list[TopicPartition]) -> None:
        """Pause new partitions whose circuit is open."""
        for tp in partitions:
            circuit = self._queue.partitions[tp].handler_line.circuit
            if circuit is not None and circuit.state is CircuitState.OPEN:
                self._pauses.pause([tp], circuit)

    def close(self) -> None:
        """Stop the timers."""
        for circuit in self._circuits.values():
            circuit.close()

    def samples(self, labels: Labels) -> list[Sample]:
        """Return the metrics of the circuits; from any thread."""
        found = []
        for circuit in list(self._circuits.values()):
            is_open = circuit.state is not CircuitState.CLOSED
            found.append(CIRCUIT_OPEN.sample(int(is_open), labels, circuit.name))
            found.append(CIRCUIT_OPENINGS.sample(circuit.openings, labels, circuit.name))
        return found

    # --- moves --------------------------------------------------------------------------------------------------------

    def moved(self, circuit: Circuit, before: CircuitState, error: BaseException | None) -> None:
        """See `CircuitObserver`."""
        partitions = [tp for tp, one in self._queue.partitions.items() if one.handler_line.circuit is circuit]
        if circuit.state is CircuitState.OPEN:
            if before is CircuitState.CLOSED or self._has_ready(partitions):
                self._pauses.pause(partitions, circuit)
            if before is CircuitState.CLOSED and error is not None:
                self._report_opened(circuit, error)
            return
        self._pauses.resume(partitions, circuit)
        self._queue.wake()
        if circuit.state is CircuitState.CLOSED:
            self._report_closed(circuit)

    def _has_ready(self, partitions: list[TopicPartition]) -> bool:
        """Whether there is another record for the next probe: else the circuit could stay open
        because of one record that always fails."""
        return any(self._queue.partitions[tp].handler_line.ready for tp in partitions)

    def _report_opened(self, circuit: Circuit, error: BaseException) -> None:
        handlers, pause = tuple(self._handlers[circuit]), circuit.breaker.pause
        logger.warning(
            "group %r: circuit %s opened after %s: the partitions of handler(s) %s are paused; "
            "retrying with %d call(s) every %g s. Records are kept, and failed attempts do not count until then: %s",
            self._group,
            circuit.name,
            circuit.reason,
            ", ".join(handlers),
            circuit.breaker.probes,
            pause,
            summary_of(error),
        )
        if self._events.wanted:
            self._events.publish(CircuitOpened(circuit.name, handlers, circuit.reason, error, pause))

    def _report_closed(self, circuit: Circuit) -> None:
        handlers, seconds = tuple(self._handlers[circuit]), loop_time() - circuit.opened_at
        logger.info(
            "group %r: circuit %s closed after %.1f s: handler(s) %s continue",
            self._group,
            circuit.name,
            seconds,
            ", ".join(handlers),
        )
        if self._events.wanted:
            self._events.publish(CircuitClosed(circuit.name, handlers, seconds))
