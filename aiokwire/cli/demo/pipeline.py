"""The demo's work: a producer, two consumers, and a broker that is killed halfway.

```
flights -> Producer -> broker process (killed, restarted) -> Consumer of partitions 0, 1 -> delays
                                                        \\-> Consumer of partitions 2, 3 -> delays
```
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from aiokwire.cli.demo.flights import Flights, load_flights
from aiokwire.cli.demo.frame import prepare
from aiokwire.cli.demo.server import BrokerProcess
from aiokwire.clock import loop_time
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress, TaskID

    from aiokwire.producer import Delivery

TOPIC = "flights"
PARTITIONS = 4
CONSUMERS = 2
DEADLINE = 55.0  # seconds for everything: the demo never hangs
SAMPLE = 0.05  # seconds between two points of the plot


@dataclass
class AirlineDelays:
    """The sums of one airline."""

    flights: int = 0
    cancelled: int = 0
    delayed: int = 0  # arrived more than 15 minutes late
    minutes: float = 0.0  # arrival delays, added up


@dataclass
class Outcome:
    """The observations of a run."""

    flights: Flights
    acknowledged: set[int] = field(default_factory=set)  # flights that the broker confirmed
    arrived: set[int] = field(default_factory=set)
    duplicates: int = 0
    out_of_order: list[str] = field(default_factory=list)
    delays: dict[str, AirlineDelays] = field(default_factory=dict)
    consumed_by: Counter[int] = field(default_factory=Counter)
    samples: list[tuple[float, int, int]] = field(default_factory=list)  # seconds, acknowledged, arrived
    killed_at: float | None = None  # seconds
    back_at: float | None = None
    acknowledged_at_kill: int = 0
    produce_seconds: float = 0.0
    total_seconds: float = 0.0
    produced: int = 0
    complete: bool = False


async def stream_flights(output: Path, *, kill: bool) -> Outcome:
    """Run the demo; the broker's log in `output` is replaced."""
    from rich.console import Console

    console = Console()
    data_dir = output / "broker-data"
    outcome = Outcome(await prepare(console, load_flights, data_dir))
    async with BrokerProcess(data_dir, TOPIC, PARTITIONS) as broker:
        console.print(f"a broker on {broker.bootstrap_servers}, its log in {data_dir}")
        await _run(outcome, broker, kill=kill)
    return outcome


async def _run(outcome: Outcome, broker: BrokerProcess, *, kill: bool) -> None:
    started = loop_time()
    halfway = anyio.Event()
    with anyio.move_on_after(DEADLINE) as scope, _progress() as progress:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch, outcome, progress, started)
            async with anyio.create_task_group() as work:
                work.start_soon(_produce, outcome, broker.bootstrap_servers, halfway, started)
                for number in range(CONSUMERS):
                    work.start_soon(_consume, outcome, broker.bootstrap_servers, number)
                if kill:
                    work.start_soon(_kill_halfway, outcome, broker, halfway, started)
            tasks.cancel_scope.cancel()
    outcome.complete = not scope.cancelled_caught
    outcome.total_seconds = loop_time() - started


def _progress() -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description:>12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )


async def _produce(outcome: Outcome, bootstrap: str, halfway: anyio.Event, started: float) -> None:
    from aiokwire import Producer

    keys, values, _ = outcome.flights
    deliveries: list[tuple[int, Delivery]] = []
    async with Producer(bootstrap, client_id="demo-producer", acks="all") as producer:
        for number, (key, value) in enumerate(zip(keys, values, strict=True)):
            deliveries.append((number, await producer.submit(TOPIC, value, key=key)))
            if number % 2000 == 0:
                outcome.produced = number
                deliveries = _collect(outcome, deliveries)
                await anyio.lowlevel.checkpoint()  # let the consumers run
            if number == len(values) // 2:
                halfway.set()
        outcome.produced = len(values)
        await producer.flush(timeout=DEADLINE)
        for number, delivery in deliveries:
            await delivery
            outcome.acknowledged.add(number)
    outcome.produce_seconds = loop_time() - started


def _collect(outcome: Outcome, deliveries: list[tuple[int, Delivery]]) -> list[tuple[int, Delivery]]:
    waiting = []
    for number, delivery in deliveries:
        if delivery.done():
            delivery.result()
            outcome.acknowledged.add(number)
        else:
            waiting.append((number, delivery))
    return waiting


async def _consume(outcome: Outcome, bootstrap: str, number: int) -> None:
    from aiokwire import Consumer

    mine = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS) if partition % CONSUMERS == number]
    last: dict[str, int] = {}  # of each aircraft, the flight seen last
    everything = len(outcome.flights.values)
    async with Consumer(
        bootstrap_servers=bootstrap,
        client_id=f"demo-consumer-{number}",
        partitions=mine,
        auto_offset_reset="earliest",
    ) as consumer:
        while len(outcome.arrived) < everything:
            # Nothing is received while the broker is down; the consumer reconnects.
            records = await consumer.getmany(max_records=5000, timeout=0.2)
            for record in records:
                account(outcome, json.loads(record.value or b"null"), last)
            outcome.consumed_by[number] += len(records)
            await anyio.lowlevel.checkpoint()


def account(outcome: Outcome, flight: dict[str, Any], last: dict[str, int]) -> None:
    """Add a flight; `last` is the last flight of each aircraft on this partition."""
    number, tail = flight["id"], flight["tailnum"]
    if number in outcome.arrived:
        outcome.duplicates += 1
        return
    outcome.arrived.add(number)
    if tail is not None:
        if number < last.get(tail, -1):
            outcome.out_of_order.append(f"{tail}: flight {number} after {last[tail]}")
        last[tail] = number
    airline = outcome.delays.setdefault(flight["carrier"], AirlineDelays())
    airline.flights += 1
    if flight["arr_delay"] is None:
        airline.cancelled += 1
    else:
        airline.minutes += flight["arr_delay"]
        airline.delayed += flight["arr_delay"] > 15


async def _kill_halfway(outcome: Outcome, broker: BrokerProcess, halfway: anyio.Event, started: float) -> None:
    await halfway.wait()
    _hide_outages()
    outcome.acknowledged_at_kill = len(outcome.acknowledged)
    outcome.killed_at = loop_time() - started
    await broker.kill()
    await broker.start()
    outcome.back_at = loop_time() - started


def _hide_outages() -> None:
    """Do not log the unreachable broker, which the progress shows, except with `-v`."""
    if not logging.getLogger("aiokwire").isEnabledFor(logging.INFO):
        logging.getLogger("aiokwire.cluster.nodes").setLevel(logging.ERROR)


async def _watch(outcome: Outcome, progress: Progress, started: float) -> None:
    total = len(outcome.flights.values)
    rows = [
        (progress.add_task("produced", total=total, note=""), lambda: outcome.produced),
        (progress.add_task("acknowledged", total=total, note=""), lambda: len(outcome.acknowledged)),
        (progress.add_task("consumed", total=total, note=""), lambda: len(outcome.arrived)),
    ]
    try:
        while True:
            _sample(outcome, progress, rows, started)
            await anyio.sleep(SAMPLE)
    finally:
        _sample(outcome, progress, rows, started)


def _sample(outcome: Outcome, progress: Progress, rows: list[tuple[TaskID, Callable[[], int]]], started: float) -> None:
    note = ""
    if outcome.killed_at is not None:
        note = (
            "broker killed"
            if outcome.back_at is None
            else f"broker back after {outcome.back_at - outcome.killed_at:.2f} s"
        )
    for row, count in rows:
        progress.update(row, completed=count(), note=note)
    outcome.samples.append((loop_time() - started, len(outcome.acknowledged), len(outcome.arrived)))
