"""One run: load, faults, and the verdict."""

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

# Bytes of a request whose answer is awaited keep their room, also when their records were given up: so long at most.
_ANSWER_SECONDS = 60.0
_CHECK_SECONDS = 0.05

# Between two faults lie at least 0.6 of a part of the run; while one lasts, fewer records than that are accepted. At
# full size that is more than `buffer_memory` holds, so that the load comes to wait for room.
_LEASH = 0.5

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    topic: str
    load: Load
    verdict: Verdict
    seconds: float
    cpu_seconds: float
    buffered: int
    peak_mib: float

    @property
    def faults(self) -> list[str]:
        """Everything that was promised and not kept."""
        faults = list(self.verdict.faults)
        if self.buffered:
            faults.append(f"the producer counts {self.buffered} bytes in its buffer after everything was settled")
        if self.load.pending:
            faults.append(f"{self.load.pending} record(s) are still pending after a flush")
        counted = self.verdict.acknowledged + self.verdict.failed
        if counted != self.load.accepted:
            faults.append(f"{self.load.accepted} records were accepted, and the fate of {counted} is known")
        return faults


class _Faults:
    """Inflicts what is due; the load may run ahead of a fault that lasts only by so many records."""

    def __init__(self, server: KafkaServer, faults: Sequence[Fault], records: int, tell: Tell) -> None:
        self._server = server
        self._due: Iterator[Fault] = iter(faults)
        self._next = next(self._due, None)
        self._leash = int(_LEASH * records / max(1, len(faults)))
        self._stop_at = 0
        self._over: anyio.Event | None = None
        self._tell = tell
        self.load: Load | None = None

    async def gate(self, group: anyio.abc.TaskGroup, accepted: int) -> None:
        """Before each chunk of the load."""
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
        self._tell(f"{counts}: {name}; answers after {seconds:.2f} s, {self.load.accepted:,} accepted by then")
        over.set()


async def run(
    server: KafkaServer,
    records: int,
    faults: Sequence[Fault],
    *,
    tell: Tell = print,
    topic_configs: Mapping[str, object] | None = None,
    **options: Any,
) -> Outcome:
    """Send `records` records through the faults, read the topic, compare. `options` are the producer's."""
    topic = f"chaos-{uuid.uuid4().hex[:8]}"
    async with Admin(server.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(topic, PARTITIONS, configs=topic_configs or {})])
    due = _Faults(server, faults, records, tell)
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
    """The bytes that a flushed producer still counts when every request has ended."""
    with anyio.move_on_after(_ANSWER_SECONDS):
        while producer.buffered:  # noqa: ASYNC110 - nothing public tells when
            await anyio.sleep(_CHECK_SECONDS)
    return producer.buffered


def _peak_mib() -> float:
    """The most memory that this process ever held."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
