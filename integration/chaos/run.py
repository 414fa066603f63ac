"""One run: load, faults, and the comparison of what was acknowledged with what is stored."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from aiokwire import Producer
from aiokwire.admin import Admin, NewTopic
from integration.chaos.faults import Fault, inflict
from integration.chaos.load import Load
from integration.chaos.stored import read
from integration.chaos.verdict import Verdict, judge
from integration.kafka import KafkaServer

PARTITIONS = 6

# A request without a response keeps its bytes in the buffer for up to this time, even when its records have failed.
_ANSWER_SECONDS = 60.0
_CHECK_SECONDS = 0.05

# Two faults are at least 0.6 parts of the run apart; fewer records than that are accepted during a fault. At full size
# that is more than `buffer_memory` holds, so that the load waits for buffer memory.
_LEASH = 0.5

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run."""

    topic: str
    load: Load
    verdict: Verdict
    seconds: float
    cpu_seconds: float
    buffered: int
    peak_mib: float

    @property
    def faults(self) -> list[str]:
        """All broken guarantees."""
        faults = list(self.verdict.faults)
        if self.buffered:
            faults.append(f"the producer counts {self.buffered} bytes in its buffer after all deliveries are done")
        if self.load.pending:
            faults.append(f"{self.load.pending} record(s) are still pending after a flush")
        counted = self.verdict.acknowledged + self.verdict.failed
        if counted != self.load.accepted:
            faults.append(f"{self.load.accepted} records were accepted, but {counted} were delivered or failed")
        return faults


class _Faults:
    """Inflicts due faults; during a fault it accepts a limited number of records of the load."""

    def __init__(self, server: KafkaServer, faults: Sequence[Fault], records: int, report: Report) -> None:
        self._server = server
        self._due: Iterator[Fault] = iter(faults)
        self._next = next(self._due, None)
        self._leash = int(_LEASH * records / max(1, len(faults)))
        self._stop_at = 0
        self._over: anyio.Event | None = None
        self._report = report
        self.load: Load | None = None

    async def gate(self, group: anyio.abc.TaskGroup, accepted: int) -> None:
        """Start a due fault before a chunk of the load.

        Wait for its end when the limit is reached.
        """
        if self._over is not None and accepted >= self._stop_at:
            await self._over.wait()
            self._over = None
        if self._next is not None and accepted >= self._next.at and (self._over is None or self._over.is_set()):
            fault, self._next = self._next, next(self._due, None)
            self._over = anyio.Event()
            self._stop_at = accepted + self._leash
            group.start_soon(self._inflict, fault, accepted, self._over)

    async def _inflict(self, fault: Fault, accepted: int, over: anyio.Event) -> None:
        assert self.load is not None
        counts = f"{accepted:>12,} accepted, {self.load.settled:>12,} settled"
        name = f"{fault.kind.value} for {fault.pause:.2f} s"
        seconds = await inflict(self._server, fault)
        self._report(f"{counts}: {name}; responds after {seconds:.2f} s, {self.load.accepted:,} accepted by then")
        over.set()


async def run(
    server: KafkaServer,
    records: int,
    faults: Sequence[Fault],
    *,
    report: Report = print,
    topic_configs: Mapping[str, object] | None = None,
    **options: Any,
) -> Outcome:
    """Send `records` records during the faults, read the topic, compare.

    `options` are the producer's.
    """
    topic = f"chaos-{uuid.uuid4().hex[:8]}"
    async with Admin(server.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(topic, PARTITIONS, configs=topic_configs or {})])
    due = _Faults(server, faults, records, report)
    began, cpu = time.perf_counter(), time.process_time()
    async with Producer(server.bootstrap_servers, **options) as producer:
        load = Load(producer, topic, PARTITIONS)
        due.load = load
        async with anyio.create_task_group() as group:
            await load.run(records, lambda accepted: due.gate(group, accepted))
        buffered = await _left_in(producer)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = _peak_mib()
    found = await read(server.bootstrap_servers, topic, PARTITIONS)
    return Outcome(topic, load, judge(load.account, found), seconds, cpu, buffered, peak)


async def _left_in(producer: Producer[bytes, bytes]) -> int:
    """Return the bytes that a flushed producer still counts after all its requests."""
    with anyio.move_on_after(_ANSWER_SECONDS):
        while producer.buffered:  # noqa: ASYNC110 - there is no public event
            await anyio.sleep(_CHECK_SECONDS)
    return producer.buffered


def _peak_mib() -> float:
    """Return the peak memory of this process."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
