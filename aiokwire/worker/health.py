"""A worker's health: a snapshot, and why records of a partition are not finished."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Protocol

from aiokwire.consumer import ConsumerHealth
from aiokwire.producer import ProducerHealth
from aiokwire.types import TopicPartition
from aiokwire.worker.circuit_breaker import Circuit, CircuitState
from aiokwire.worker.work_queue import AssignedPartition, Work


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerPartitionHealth:
    """An assigned partition with unfinished records."""

    partition: TopicPartition
    offset: int
    """The oldest unfinished record, which holds back the committed offset."""
    in_flight: int
    """Records that are fetched and not finished."""
    idle: float
    """Seconds for which that record has been the oldest: since its handler started, or since
    `health` first saw it."""
    reason: str
    """What it waits for."""
    stalled: bool
    """Whether it has been the oldest for `stalled_after_ms`."""

    def __str__(self) -> str:
        return f"{self.partition} at {self.offset}, {self.in_flight} in flight: {self.reason}"


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerHealth:
    """A worker at one moment."""

    consumer: ConsumerHealth
    producer: ProducerHealth
    partitions: Mapping[TopicPartition, WorkerPartitionHealth]
    """Those with unfinished records."""
    retries: int
    """Records that wait for their next attempt."""
    running: int
    """Handlers that run now."""
    failure: BaseException | None
    """The error that stopped the worker."""

    @property
    def stalled(self) -> list[WorkerPartitionHealth]:
        """Partitions whose committed offset is held back for too long."""
        return [each for each in self.partitions.values() if each.stalled]

    @property
    def ok(self) -> bool:
        """Whether it has not failed, nothing is stalled, and its consumer and producer are ok."""
        return self.failure is None and not self.stalled and self.consumer.ok and self.producer.ok

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself: only a new worker handles records."""
        return self.failure is not None or self.consumer.has_ended or self.producer.has_ended

    @property
    def reasons(self) -> list[str]:
        """Why it is not ok, one sentence each."""
        if self.failure is not None:
            return [f"it has failed: {self.failure}"]
        stalled = [f"the oldest record is unfinished for {each.idle:.0f} s: {each}" for each in self.stalled]
        return [*stalled, *self.consumer.reasons, *self.producer.reasons]


class Running(Protocol):
    """A task that handles one record, or one batch, at a time."""

    item: Work | None
    started: float


class ProgressMonitor:
    """Measures how long each partition's oldest unfinished record has been the oldest."""

    def __init__(self, stalled_after: float) -> None:
        """`stalled_after`: seconds."""
        self._stalled_after = stalled_after
        self._seen: dict[AssignedPartition, tuple[int, float]] = {}

    def look(
        self,
        now: float,
        partitions: Collection[AssignedPartition],
        running: Collection[Running],
        waiting: Collection[Work],
    ) -> dict[TopicPartition, WorkerPartitionHealth]:
        """Return the partitions with unfinished records.

        Args:
            now: on the loop's clock.
            partitions: those that are assigned.
            running: the executors.
            waiting: records that wait for a retry.
        """
        oldest = {each: offset for each in partitions if (offset := each.completed.oldest) is not None}
        self._seen = {each: self._since(each, offset, now) for each, offset in oldest.items()}
        items = [(one, one.item) for one in running if one.item is not None]
        active = {(item.partition, offset): one for one, item in items for offset in item.offsets}
        put_off = {(item.partition, offset): item for item in waiting for offset in item.offsets}
        found = {}
        for each, (offset, since) in self._seen.items():
            runner = active.get((each, offset))
            idle = now - (since if runner is None else min(since, runner.started))
            reason = reason_of(runner, put_off.get((each, offset)), now, each.handler_line.circuit)
            is_stalled = idle >= self._stalled_after
            found[each.tp] = WorkerPartitionHealth(each.tp, offset, each.in_flight, idle, reason, is_stalled)
        return found

    def _since(self, partition: AssignedPartition, offset: int, now: float) -> tuple[int, float]:
        before = self._seen.get(partition)
        return before if before is not None and before[0] == offset else (offset, now)


def reason_of(running: Running | None, put_off: Work | None, now: float, circuit: Circuit | None = None) -> str:
    """Return what an unfinished record waits for."""
    if running is not None and running.item is not None:
        name = running.item.partition.handler_line.handler.name
        return f"handler {name} has been running for {now - running.started:.0f} s, attempt {running.item.attempt}"
    if put_off is not None:
        name = put_off.partition.handler_line.handler.name
        return f"the record waits for attempt {put_off.attempt} of handler {name}"
    if circuit is not None and circuit.state is not CircuitState.CLOSED:
        return f"circuit {circuit.name} is {circuit.state.value} after {circuit.reason}"
    return "the record waits for an executor, for its batch, or for the acknowledgement of what its handler sent"
