"""`python -m integration.bench.metrics`: what metrics cost `submit` and `getmany`, in one run.

One process, one producer, one consumer, windows of some seconds that take turns: "off", without a
reader of the metrics; "on", when another process fetches `/metrics` of Prometheus' collector every
second; and "uncounted", when the methods that count per batch and request do nothing. Ratios are
those of windows of the same repetition.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import statistics
import sys
import time
import urllib.request
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from typing import Any, Final, NamedTuple
from unittest import mock

import uvloop
from prometheus_client import CollectorRegistry, start_http_server
from rich.console import Console
from rich.table import Table

from aiokwire import Admin, Consumer, Producer, TopicPartition
from aiokwire.admin import NewTopic
from aiokwire.consumer.metrics import TopicCounts
from aiokwire.metrics import Histogram
from aiokwire.net.metrics import NetworkCounts
from aiokwire.producer.metrics import ProducerCounts
from aiokwire.telemetry import KafkaCollector
from integration.bench.__main__ import broker
from integration.bench.plan import order

PARTITIONS: Final = 4
FILLED: Final = 2_000_000  # records that the consumer reads, again and again
VALUE: Final = bytes(100)
SCRAPE_SECONDS: Final = 1.0
VARIANTS: Final = ("off", "on", "uncounted")
LIMIT: Final = 0.97  # of the rate without a reader
_CHUNK: Final = 1_000  # records between two looks at the clock
_MOST: Final = 100_000  # records of one call of `getmany`
_COUNTING: Final = {
    Histogram: ("observe",),
    ProducerCounts: ("left", "delivered"),
    TopicCounts: ("delivered", "observe_age"),
    NetworkCounts: ("sent", "answered"),
}


class Window(NamedTuple):
    """What happened in one window."""

    records: int
    seconds: float
    cpu: float  # seconds of this process

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds for a million records."""
        return self.cpu * 1e6 / self.records


Work = Callable[[float], Awaitable[int]]  # works for some seconds, and returns the number of records


def scrape(url: str, wanted: Event, reads: Any) -> None:
    """Fetch the metrics every second while wanted: another process, as Prometheus is."""
    while True:
        wanted.wait()
        with urllib.request.urlopen(url) as answer:
            answer.read()
        with reads.get_lock():
            reads.value += 1
        time.sleep(SCRAPE_SECONDS)


@contextmanager
def uncounted() -> Iterator[None]:
    """Have the methods that count do nothing."""
    with contextlib.ExitStack() as stack:
        for owner, names in _COUNTING.items():
            for name in names:
                stack.enter_context(mock.patch.object(owner, name, _nothing))
        yield


def _nothing(*_arguments: object) -> None: ...


class Bench:
    """Windows of one process with its clients."""

    def __init__(self, wanted: Event, seconds: float) -> None:
        """`wanted`: set while the metrics are to be read; `seconds`: of a window."""
        self._wanted = wanted
        self._seconds = seconds

    async def run(self, work: Work, repeat: int) -> dict[str, list[Window]]:
        """Measure all variants in turn."""
        await work(self._seconds)
        found: dict[str, list[Window]] = {variant: [] for variant in VARIANTS}
        for turn in range(repeat):
            for variant in order(list(VARIANTS), turn):
                with self._conditions(variant):
                    found[variant].append(await self._window(work))
        return found

    @contextmanager
    def _conditions(self, variant: str) -> Iterator[None]:
        if variant == "on":
            self._wanted.set()
        with uncounted() if variant == "uncounted" else contextlib.nullcontext():
            yield
        self._wanted.clear()

    async def _window(self, work: Work) -> Window:
        began, cpu = time.perf_counter(), time.process_time()
        records = await work(self._seconds)
        return Window(records, time.perf_counter() - began, time.process_time() - cpu)


def producing(producer: Producer[bytes, bytes], topic: str) -> Work:
    """Return what submits records, and waits for their acknowledgement."""

    async def work(seconds: float) -> int:
        submit, records, end = producer.submit, 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            for _ in range(_CHUNK):
                await submit(topic, VALUE)
            records += _CHUNK
        await producer.flush()
        return records

    return work


def consuming(consumer: Consumer[bytes, bytes], partitions: list[TopicPartition]) -> Work:
    """Return what reads the topic, again from its start after its end."""
    left = FILLED

    async def work(seconds: float) -> int:
        nonlocal left
        records, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            found = len(await consumer.getmany(max_records=_MOST))
            records += found
            left -= found
            if left <= 0:
                left = FILLED
                for tp in partitions:
                    consumer.seek(tp, 0)
        return records

    return work


async def measure(servers: str, wanted: Event, reads: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Measure both calls."""
    sent, filled = (f"metrics-{uuid.uuid4().hex}" for _ in range(2))
    async with Admin(servers) as admin:
        (await admin.create_topics([NewTopic(name, PARTITIONS) for name in (sent, filled)])).check()
    partitions = [TopicPartition(filled, number) for number in range(PARTITIONS)]
    registry = CollectorRegistry()
    async with (
        Producer(servers) as producer,
        Consumer(partitions=partitions, bootstrap_servers=servers, auto_offset_reset="earliest") as consumer,
    ):
        registry.register(KafkaCollector(producer, consumer))
        server, _ = start_http_server(0, "127.0.0.1", registry)
        url = f"http://127.0.0.1:{server.server_port}/metrics"
        scraper = multiprocessing.get_context("spawn").Process(target=scrape, args=(url, wanted, reads), daemon=True)
        scraper.start()
        try:
            bench = Bench(wanted, options.seconds)
            for _ in range(FILLED):
                await producer.submit(filled, VALUE)
            await producer.flush()
            return {
                "submit": await bench.run(producing(producer, sent), options.repeat),
                "getmany": await bench.run(consuming(consumer, partitions), options.repeat),
            }
        finally:
            scraper.terminate()
            await asyncio.get_running_loop().run_in_executor(None, scraper.join)
            server.shutdown()


def show(console: Console, found: dict[str, dict[str, list[Window]]]) -> bool:
    """Print the table; return whether metrics cost no more than they may."""
    table = Table("call", "metrics", "records/s", "CPU s per million", "rate / off", "(least, greatest)", "CPU / off")
    is_within = True
    for call, windows in found.items():
        for variant in VARIANTS:
            own, off = windows[variant], windows["off"]
            rates = [one.rate / other.rate for one, other in zip(own, off, strict=True)]
            cpus = [one.cpu_per_million / other.cpu_per_million for one, other in zip(own, off, strict=True)]
            rate = statistics.median(rates)
            is_within &= variant != "on" or rate >= LIMIT
            table.add_row(
                call,
                variant,
                f"{statistics.median(one.rate for one in own):,.0f}",
                f"{statistics.median(one.cpu_per_million for one in own):.3f}",
                f"{rate:.3f}",
                f"{min(rates):.3f}, {max(rates):.3f}",
                f"{statistics.median(cpus):.3f}",
            )
    console.print(table)
    return is_within


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.metrics", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a window (default: %(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=8, metavar="N", help="windows of each kind (default: %(default)s)"
    )
    parser.add_argument("--bootstrap", help="default: start Kafka 4.3.1")
    return parser.parse_args()


def main() -> int:
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else 130)
    context = multiprocessing.get_context("spawn")
    wanted, reads = context.Event(), context.Value("i", 0)
    with broker(options.bootstrap) as servers:
        found = uvloop.run(measure(servers, wanted, reads, options))
    is_within = show(console, found)
    console.print(f"the metrics were read {reads.value} times in {2 * options.repeat} windows of {options.seconds:g} s")
    return 0 if is_within else 1


if __name__ == "__main__":
    sys.exit(main())
