"""`make soak`: memory, objects and tasks of a producer over a long time.

Phases alternate until the time is over: steady records, a stopped broker (deliveries fail at their
timeout), idle time, awaited sends and cancelled waits. After each phase the producer is flushed and
the process is measured: resident memory, objects of the garbage collector, tasks. A table compares
the last quarter with the first one after a warm-up, a plot is written to build/soak.png, and growth
ends the run with status 1.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import json
import logging
import os
import statistics
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import uvloop
from rich.console import Console
from rich.table import Table

from aiokwire import Producer
from aiokwire.admin import Admin, NewTopic
from aiokwire.errors import DeliveryFailed, KafkaError
from aiokwire.threads import run_in_thread
from integration.embedded import EmbeddedProcess

_OUTPUT = Path(__file__).resolve().parents[1] / "build"
_TOPIC = "soak"
_CHECK_SECONDS = 0.25
# The allowed growth from the first to the last quarter: fragmentation, but not a leak of one object per request.
_MIB_ALLOWED = 4.0
_OBJECTS_ALLOWED = 400


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """The measurements of the process after a phase."""

    phase: str
    seconds: float
    mib: float
    objects: int
    tasks: int
    sent: int
    failed: int
    held: int


class Soak:
    """One producer against one broker process."""

    def __init__(self, broker: EmbeddedProcess, producer: Producer[bytes, bytes], seconds: float, phase: float) -> None:
        self._broker = broker
        self._producer = producer
        self._seconds = seconds
        self._phase = phase
        self._began = anyio.current_time()
        self.sent = 0
        self.failed = 0
        self.samples: list[Sample] = []

    async def run(self) -> None:
        """Run the phases in turn until the time is over."""
        phases: list[tuple[str, Callable[[float], Awaitable[None]]]] = [
            ("success", self._success),
            ("awaited", self._awaited),
            ("errors", self._errors),
            ("idle", self._idle),
            ("cancelled", self._cancelled),
        ]
        while anyio.current_time() - self._began < self._seconds:
            for name, work in phases:
                await work(anyio.current_time() + self._phase)
                await self._producer.flush(timeout=30)
                self._measure(name)

    def _measure(self, phase: str) -> None:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        mib = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        seconds = anyio.current_time() - self._began
        held = self._producer.buffered
        objects = len(gc.get_objects()) - len(self.samples)  # without the samples
        tasks = len(asyncio.all_tasks())
        self.samples.append(Sample(phase, seconds, mib, objects, tasks, self.sent, self.failed, held))

    async def _success(self, end: float) -> None:
        """Send bursts of 5,000 records with pauses, as a service does."""
        while anyio.current_time() < end:
            for number in range(5000):
                await self._producer.submit(_TOPIC, b"x" * 100, b"%d" % number)
            self.sent += 5000
            await anyio.sleep(_CHECK_SECONDS)

    async def _awaited(self, end: float) -> None:
        async def sender() -> None:
            while anyio.current_time() < end:
                await self._producer.send(_TOPIC, b"x" * 100)
                self.sent += 1
                await anyio.sleep(0.01)

        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(sender)

    async def _errors(self, end: float) -> None:
        """Send while the broker is down: every record fails at its delivery timeout."""
        await run_in_thread(self._broker.stop)
        try:
            while anyio.current_time() < end:
                deliveries = [await self._producer.submit(_TOPIC, b"x" * 100) for _ in range(200)]
                for delivery in deliveries:
                    try:
                        await delivery
                    except DeliveryFailed:
                        self.failed += 1
        finally:
            await run_in_thread(self._broker.restart)
        await self._work_again()

    async def _work_again(self) -> None:
        """Send until the producer has reached the broker."""
        while True:
            try:
                await self._producer.send(_TOPIC, b"again")
            except KafkaError:
                continue
            return

    async def _idle(self, end: float) -> None:
        await anyio.sleep_until(end)

    async def _cancelled(self, end: float) -> None:
        """Cancel calls before their response arrives."""
        while anyio.current_time() < end:
            for _ in range(100):
                with anyio.move_on_after(0):
                    await self._producer.send(_TOPIC, b"x" * 100)
            await anyio.sleep(0.05)


def growth(samples: list[Sample]) -> tuple[float, float]:
    """Return the growth in MiB and objects from the first quarter after warm-up to the last."""
    mib: list[float] = []
    objects: list[float] = []
    for phase in {sample.phase for sample in samples}:
        mine = [sample for sample in samples if sample.phase == phase]
        mine = mine[len(mine) // 4 :]  # the warm-up: pools fill, caches grow
        part = max(1, len(mine) // 4)
        first, last = mine[:part], mine[-part:]
        mib.append(statistics.median(s.mib for s in last) - statistics.median(s.mib for s in first))
        objects.append(statistics.median(s.objects for s in last) - statistics.median(s.objects for s in first))
    return statistics.median(mib), statistics.median(objects)


def show(console: Console, samples: list[Sample]) -> None:
    """Print the first, middle and last sample of each phase."""
    table = Table("phase", "at, s", "RSS, MiB", "gc objects", "tasks", "sent", "failed", "bytes held")
    for phase in dict.fromkeys(sample.phase for sample in samples):
        mine = [sample for sample in samples if sample.phase == phase]
        for s in dict.fromkeys((mine[0], mine[len(mine) // 4], mine[len(mine) // 2], mine[-1])):
            table.add_row(
                s.phase, f"{s.seconds:.0f}", f"{s.mib:.1f}", f"{s.objects:,}", str(s.tasks), f"{s.sent:,}",
                f"{s.failed:,}", str(s.held),
            )  # fmt: skip
        table.add_section()
    console.print(table)


def plot(samples: list[Sample], path: Path) -> None:
    """Plot memory and objects over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 6), layout="constrained")
    for phase in dict.fromkeys(sample.phase for sample in samples):
        mine = [sample for sample in samples if sample.phase == phase]
        at = [s.seconds / 60 for s in mine]
        above.plot(at, [s.mib for s in mine], marker=".", label=f"after {phase}")
        below.plot(at, [s.objects for s in mine], marker=".")
    above.set(
        ylabel="resident memory, MiB",
        ylim=(0, 1.3 * max(s.mib for s in samples)),
        title="One producer, its phases in turn",
    )
    most = max(s.objects for s in samples)
    below.set(ylabel="objects of the garbage collector", xlabel="minutes", ylim=(0, 1.3 * most))
    above.legend(loc="lower right", ncols=5, fontsize="small")
    figure.savefig(path, dpi=120)


async def soak(broker: EmbeddedProcess, minutes: float, phase: float) -> list[Sample]:
    """Run the phases and return the samples."""
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.create_topics([NewTopic(_TOPIC, 4)])
    options: dict[str, Any] = {"delivery_timeout_ms": 500, "reconnect_backoff_max_ms": 100, "retry_backoff_max_ms": 50}
    async with Producer(broker.bootstrap_servers, **options) as producer:
        run = Soak(broker, producer, minutes * 60, phase)
        await run.run()
        return run.samples


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m integration.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--phase", type=float, default=3.0, help="seconds of one phase")
    given = parser.parse_args()
    logging.getLogger("aiokwire").setLevel(logging.CRITICAL)  # outages of the broker are expected
    settings: dict[str, object] = {"log.retention.bytes": 64 << 20, "log.segment.bytes": 16 << 20}
    broker = EmbeddedProcess(settings=settings)
    broker.start()
    try:
        samples = uvloop.run(soak(broker, given.minutes, given.phase))
    finally:
        broker.close()
    console = Console(width=110)
    show(console, samples)
    _OUTPUT.mkdir(exist_ok=True)
    (_OUTPUT / "soak.json").write_text(json.dumps([dataclasses.asdict(sample) for sample in samples]))
    plot(samples, _OUTPUT / "soak.png")
    mib, objects = growth(samples)
    held = [sample for sample in samples if sample.held]
    console.print(f"from the first quarter after the warm-up to the last: {mib:+.1f} MiB, {objects:+.0f} objects")
    if held:
        console.print(f"[red]{len(held)} sample(s) held bytes after a flush[/red]")
    flat = mib <= _MIB_ALLOWED and objects <= _OBJECTS_ALLOWED
    return 0 if flat and not held else 1


if __name__ == "__main__":
    sys.exit(main())
