"""The demo's work.

```
flights -> Producer -> topic flights -> pipeline (killed, restarted) -> topic delays -> Consumer
       \\-> direct computation ----------------------------------------------------> comparison
```
"""

from __future__ import annotations

import json
import math
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from aiokwire.cli.demo.flights import Flights, load_flights
from aiokwire.cli.demo.frame import prepare
from aiokwire.cli.demo.server import BrokerProcess
from aiokwire.cli.spark.demo.direct import Comparison, Hour, Place, compare, compute, read_hour
from aiokwire.cli.spark.demo.process import PipelineProcess
from aiokwire.clock import loop_time
from aiokwire.errors import KafkaError
from aiokwire.threads import run_in_thread
from aiokwire.types import TopicPartition

SOURCE = "flights"
SINK = "delays"
PARTITIONS = 4
PATIENCE = 300.0  # seconds without progress before the demo fails; a busy machine may be slow
COUNT_EVERY = 1.0  # seconds between two counts of the checkpoint's files
PAUSE = 0.02  # seconds between two looks at the topic; a transaction is open for some hundred milliseconds
KILL_FROM = 15_000  # committed records; the next open transaction is killed


class Stalled(KafkaError):
    """There was no progress for `PATIENCE` seconds."""


class Patience:
    """Detects missing progress."""

    def __init__(self, what: str, log: Path | None = None) -> None:
        self._what = what
        self._log = log
        self._seen: object = None
        self._since: float | None = None

    def note(self, seen: object, now: float) -> None:
        """Note the progress at a time in seconds.

        Raises: Stalled: it has not changed for `PATIENCE` seconds.
        """
        if self._since is None or seen != self._seen:
            self._seen, self._since = seen, now
        elif now - self._since >= PATIENCE:
            load, cores = os.getloadavg()[0], os.cpu_count()
            log = "" if self._log is None else f"; its log is {self._log}"
            raise Stalled(
                f"{self._what} made no progress for {PATIENCE:.0f} s and was stopped (the machine has {cores} cores "
                f"and a load of {load:.1f}){log}; start the demo again when the machine is less busy"
            )


@dataclass
class Outcome:
    """The observations of a run."""

    airlines: dict[str, str]
    flights: int = 0
    produce_seconds: float = 0.0
    samples: list[tuple[float, int, int]] = field(default_factory=list)  # seconds, end of the log, last stable offset
    killed_at: float | None = None  # seconds
    left_open: int = 0  # rows of the transaction that the kill left open
    committed_at_kill: int = 0
    back_at: float | None = None  # seconds, when the next run committed
    seconds: float = 0.0
    summary: dict[str, Any] = field(default_factory=dict)  # of the last run
    in_log: int = 0  # records that a read_uncommitted reader finds
    hours: list[tuple[Place, Hour]] = field(default_factory=list)  # that a read_committed reader finds
    comparison: Comparison = field(default_factory=Comparison)


async def hourly_delays(output: Path, *, kill: bool) -> Outcome:
    """Run the demo; `output` is emptied first.

    Raises: Stalled: progress has ended; KafkaError: the pipeline failed.
    """
    from rich.console import Console

    console = Console()
    loaded, decoded = await prepare(console, _load, output)
    outcome = Outcome(loaded.airlines, flights=len(loaded.values))
    async with BrokerProcess(output / "broker-data", SOURCE, PARTITIONS) as broker:
        await _create_sink(broker.bootstrap_servers)
        outcome.produce_seconds = await _produce(broker.bootstrap_servers, loaded)
        console.print(
            f"a broker on {broker.bootstrap_servers} has {outcome.flights:,} flights, sent in "
            f"{outcome.produce_seconds:.1f} s"
        )
        with console.status("") as status:
            await _run(outcome, broker.bootstrap_servers, output, console, status, kill=kill)
            status.update("reading the delays back, and computing them directly")
            await _read_back(outcome, broker.bootstrap_servers)
    outcome.comparison = await run_in_thread(_compare, decoded, outcome.hours)
    return outcome


def _load(stopped: threading.Event) -> tuple[Flights, list[dict[str, Any]]]:
    """Load the flights in the order of their hours, encoded and decoded."""
    flights = load_flights(stopped)
    decoded = [json.loads(value) for value in flights.values]
    order = sorted(range(len(decoded)), key=lambda number: str(decoded[number]["time_hour"]))
    keys, values = [flights.keys[number] for number in order], [flights.values[number] for number in order]
    return Flights(keys, values, flights.airlines), decoded


def _compare(decoded: list[dict[str, Any]], hours: list[tuple[Place, Hour]]) -> Comparison:
    return compare(compute(decoded), hours)


async def _create_sink(bootstrap: str) -> None:
    from aiokwire import Admin

    async with Admin(bootstrap) as admin:
        await admin.create_topic(SINK, PARTITIONS)


async def _produce(bootstrap: str, flights: Flights) -> float:
    from aiokwire import Producer

    started = loop_time()
    async with Producer(bootstrap, compression_type="lz4") as producer:
        for key, value in zip(flights.keys, flights.values, strict=True):
            await producer.submit(SOURCE, value, key=key)
        await producer.flush()  # bounded by each record's delivery timeout
    return loop_time() - started


async def _run(outcome: Outcome, bootstrap: str, output: Path, console: Any, status: Any, *, kill: bool) -> None:
    """Run the pipeline, twice if it is killed."""
    from aiokwire import Admin

    started = loop_time()
    async with Admin(bootstrap) as admin:
        watch = _Watch(admin, outcome, started, output / "checkpoint")
        number = 1
        pipeline = PipelineProcess(bootstrap, output, number)
        try:
            await pipeline.start()
            if kill:
                status.update("the pipeline runs; it will be killed in the middle of a transaction")
                await watch.until_open(pipeline)
                await pipeline.kill()
                await watch.note_kill()
                console.print(
                    f"killed with SIGKILL after {outcome.killed_at:.1f} s: {outcome.committed_at_kill:,} records "
                    f"committed, {outcome.left_open:,} in an open transaction"
                )
                number += 1
                pipeline = PipelineProcess(bootstrap, output, number)
                await pipeline.start()
            status.update("the pipeline runs" if number == 1 else "the pipeline runs again, from its checkpoint")
            await watch.until_ended(pipeline)
            outcome.summary = await pipeline.finish()
        finally:
            await pipeline.kill()
        outcome.seconds = loop_time() - started


class _Watch:
    """Watches the topic of the delays: the ends of its log and of its committed records."""

    def __init__(self, admin: Any, outcome: Outcome, started: float, checkpoint: Path) -> None:
        self._admin = admin
        self._checkpoint = checkpoint
        self._kept = 0  # files of the checkpoint
        self._counted_at = -math.inf
        self._outcome = outcome
        self._started = started
        self._places = [TopicPartition(SINK, number) for number in range(PARTITIONS)]

    async def look(self) -> tuple[int, int]:
        """Return both ends, summed over all partitions, including control records."""
        from aiokwire.cluster import LATEST

        ends = []
        for isolation in ("read_uncommitted", "read_committed"):
            found = await self._admin.list_offsets(dict.fromkeys(self._places, LATEST), isolation_level=isolation)
            ends.append(sum(each.offset for each in found.values()))
        outcome = self._outcome
        seconds = loop_time() - self._started
        if not outcome.samples or outcome.samples[-1][1:] != (ends[0], ends[1]):
            outcome.samples.append((seconds, ends[0], ends[1]))
        # Later records than those left open by the kill, and their abort markers, are the next run's.
        aborted = outcome.committed_at_kill + outcome.left_open + PARTITIONS
        if outcome.killed_at is not None and outcome.back_at is None and ends[1] > aborted:
            outcome.back_at = seconds
        return ends[0], ends[1]

    async def until_open(self, pipeline: PipelineProcess) -> None:
        """Wait for an open transaction after `KILL_FROM` committed records, or the pipeline's end.

        Raises: Stalled.
        """
        patience = Patience("the pipeline", pipeline.log)
        while not pipeline.ended:
            log, committed = await self._look_for_progress(patience)
            if committed >= KILL_FROM and log > committed:
                return
            await anyio.sleep(PAUSE)

    async def note_kill(self) -> None:
        killed_at = loop_time() - self._started
        log, committed = await self.look()
        self._outcome.killed_at = killed_at
        self._outcome.committed_at_kill = committed
        self._outcome.left_open = log - committed

    async def until_ended(self, pipeline: PipelineProcess) -> None:
        """Raises: Stalled."""
        patience = Patience("the pipeline", pipeline.log)
        while not pipeline.ended:
            await self._look_for_progress(patience)
            await anyio.sleep(PAUSE)
        await self.look()

    async def _look_for_progress(self, patience: Patience) -> tuple[int, int]:
        """Return `look()`; new files in the checkpoint are progress: the first rows are late."""
        ends = await self.look()
        now = loop_time()
        if now - self._counted_at >= COUNT_EVERY:
            self._counted_at, self._kept = now, await run_in_thread(count_files, self._checkpoint)
        patience.note((ends, self._kept), now)
        return ends


def count_files(folder: Path) -> int:
    """Count the files below a folder; Spark may delete some meanwhile."""
    return sum(len(files) for _, _, files in os.walk(folder))


async def _read_back(outcome: Outcome, bootstrap: str) -> None:
    """Read the committed records, and count all records."""
    from aiokwire import Consumer

    places = [TopicPartition(SINK, number) for number in range(PARTITIONS)]
    for isolation in ("read_uncommitted", "read_committed"):
        async with Consumer(
            bootstrap_servers=bootstrap, partitions=places, isolation_level=isolation, auto_offset_reset="earliest"
        ) as consumer:
            ends = await consumer.end_offsets(places)
            records = []
            patience = Patience("reading the delays back")
            while [place for place in places if await consumer.position(place) < ends[place]]:
                records += await consumer.getmany(max_records=20_000, timeout=0.2)
                patience.note(len(records), loop_time())
        outcome.in_log = outcome.in_log or len(records)
    outcome.hours = [read_hour(record.value or b"null") for record in records]
