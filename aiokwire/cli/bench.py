"""`aiokwire bench`: throughput, CPU and latency against any broker."""

from __future__ import annotations

import os
import resource
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import anyio
import click

from aiokwire.cli.connection import bootstrap_for_verbs, bootstrap_option, connect_options
from aiokwire.cli.lazy import VerbGroup
from aiokwire.cli.options import client_options
from aiokwire.cli.output import print_json, print_report
from aiokwire.cli.running import run
from aiokwire.types import TopicPartition

PERCENTILES = (50.0, 95.0, 99.0, 99.9)


@click.group("bench", cls=VerbGroup)
@bootstrap_for_verbs
def command() -> None:
    """Measure throughput, CPU and latency against a broker."""


@command.command("produce")
@click.argument("topic")
@bootstrap_option
@click.option(
    "--records", "-n", type=click.IntRange(1), default=1_000_000, show_default=True, help="Number of records."
)
@click.option(
    "--size", "-s", type=click.IntRange(0), default=100, show_default=True, help="Size of each value in bytes."
)
@click.option(
    "--tasks", "-t", type=click.IntRange(1), help="Number of tasks that each await every send; also prints latencies."
)
@click.option("--compression", "-z", default="none", show_default=True, help="none, gzip, snappy, lz4 or zstd.")
@click.option("--acks", default="all", show_default=True, help="0, 1 or all.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
@client_options
def produce(
    *,
    topic: str,
    bootstrap: str,
    records: int,
    size: int,
    tasks: int | None,
    compression: str,
    acks: str,
    as_json: bool,
    settings: dict[str, Any],
) -> None:
    """Produce values to TOPIC.

    A first record, which is not measured, opens the connections.
    """
    options = {"compression_type": compression, "acks": acks, **connect_options(), **settings}
    # Half random, half constant: neither incompressible nor trivial for a codec.
    value = os.urandom(size // 2) + b"x" * (size - size // 2)

    async def main() -> int:
        from aiokwire import Producer

        async with Producer(bootstrap, **options) as producer:
            await producer.send(topic, value)  # connections and metadata are not measured
            result = await (
                _submit(producer, topic, value, records)
                if tasks is None
                else _send(producer, topic, value, records, tasks)
            )
        show(f"produce {topic}", result, as_json=as_json)
        return 0

    run(main)


async def _submit(producer: Any, topic: str, value: bytes, records: int) -> Result:
    watch = Stopwatch()
    submit = producer.submit
    for _ in range(records):
        await submit(topic, value)
    await producer.flush()
    return watch.stop(records, records * len(value), [])


async def _send(producer: Any, topic: str, value: bytes, records: int, tasks: int) -> Result:
    latencies: list[float] = []
    shares = [records // tasks + (number < records % tasks) for number in range(tasks)]

    async def worker(share: int) -> None:
        for _ in range(share):
            began = perf_counter()
            await producer.send(topic, value)
            latencies.append(perf_counter() - began)

    watch = Stopwatch()
    async with anyio.create_task_group() as group:
        for share in shares:
            group.start_soon(worker, share)
    return watch.stop(records, records * len(value), latencies)


@command.command("consume")
@click.argument("topic")
@bootstrap_option
@click.option(
    "--records",
    "-n",
    type=click.IntRange(1),
    help="Stop after this number of records (default: at the end of the topic).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as one JSON object.")
@client_options
def consume(topic: str, bootstrap: str, records: int | None, as_json: bool, settings: dict[str, Any]) -> None:
    """Consume TOPIC from its beginning."""
    options = {"auto_offset_reset": "earliest", **connect_options(), **settings}

    async def main() -> int:
        from aiokwire import Consumer

        async with Consumer(bootstrap_servers=bootstrap, **options) as consumer:
            assigned = [
                TopicPartition(topic, number) for number in await consumer.partitions_for_topic(topic, timeout=10)
            ]
            begins = await consumer.beginning_offsets(assigned)
            available = sum((await consumer.end_offsets(assigned)).values()) - sum(begins.values())
            wanted = available if records is None else min(records, available)
            await consumer.assign(assigned)
            watch = Stopwatch()
            count = size = 0
            while count < wanted:
                batch = await consumer.getmany(max_records=10_000, timeout=10)
                count += len(batch)
                size += sum([len(record.value or b"") for record in batch])
            result = watch.stop(count, size, [])
        show(f"consume {topic}", result, as_json=as_json)
        return 0

    run(main)


# --- results ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    records: int
    bytes: int
    seconds: float
    cpu_seconds: float  # user and system, of this process
    peak_memory_mb: float
    latency_ms: dict[str, float]  # percentile to milliseconds

    @property
    def per_second(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0


class Stopwatch:
    """Wall and CPU time since its start."""

    def __init__(self) -> None:
        self._wall = perf_counter()
        self._cpu = _cpu_seconds()

    def stop(self, records: int, size: int, latencies: list[float]) -> Result:
        """Return the result for `records` of `size` bytes; `latencies` in seconds."""
        return Result(
            records=records,
            bytes=size,
            seconds=perf_counter() - self._wall,
            cpu_seconds=_cpu_seconds() - self._cpu,
            peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            latency_ms=percentiles(latencies),
        )


def percentiles(latencies: list[float]) -> dict[str, float]:
    """Return percentiles in milliseconds of latencies in seconds; empty without latencies."""
    if not latencies:
        return {}
    ordered = sorted(latencies)
    last = len(ordered) - 1
    return {f"p{rank:g}": ordered[min(last, int(len(ordered) * rank / 100))] * 1000 for rank in PERCENTILES} | {
        "max": ordered[-1] * 1000
    }


def show(title: str, result: Result, *, as_json: bool) -> None:
    """Print a result as a table or as JSON."""
    if as_json:
        print_json({"bench": title, "per_second": result.per_second, **asdict(result)})
        return
    rows: list[list[object]] = [
        ["records", result.records],
        ["records/s", result.per_second],
        ["MB/s", result.bytes / 1e6 / result.seconds if result.seconds else 0.0],
        ["seconds", result.seconds],
        ["CPU s per million", result.cpu_seconds / result.records * 1e6 if result.records else 0.0],
        ["peak memory, MB", result.peak_memory_mb],
    ]
    rows += [[f"latency {name}, ms", value] for name, value in result.latency_ms.items()]
    print_report(title, ["figure", "value"], [[name, _rounded(value)] for name, value in rows])


def _rounded(value: object) -> object:
    """Drop the decimals of numbers above 100."""
    return round(value) if isinstance(value, float) and value > 100 else value


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
