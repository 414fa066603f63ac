"""`aiokwire bench produce TOPIC`: submit as fast as it goes, or await each send from many tasks."""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

import anyio
import click

from aiokwire.cli.bench.measure import Result, Stopwatch, show
from aiokwire.cli.options import CONNECT, bootstrap_option, client_options
from aiokwire.cli.running import run


@click.command("produce")
@click.argument("topic")
@bootstrap_option
@click.option("--records", "-n", type=click.IntRange(1), default=1_000_000, show_default=True)
@click.option("--size", "-s", type=click.IntRange(0), default=100, show_default=True, help="Bytes of each value.")
@click.option("--tasks", "-t", type=click.IntRange(1), help="Tasks that each await their sends; prints latencies.")
@click.option("--compression", "-z", default="none", show_default=True)
@click.option("--acks", default="all", show_default=True)
@click.option("--json", "as_json", is_flag=True)
@client_options
def command(
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
    """Produce RECORDS values to TOPIC."""
    options = {"compression_type": compression, "acks": acks, **CONNECT, **settings}
    # Half random, half constant: neither incompressible nor trivial for a codec.
    value = os.urandom(size // 2) + b"x" * (size - size // 2)

    async def bench() -> int:
        from aiokwire import Producer

        async with Producer(bootstrap, **options) as producer:
            await producer.send(topic, value)  # connections and metadata are not what is measured
            result = await (
                _submit(producer, topic, value, records)
                if tasks is None
                else _send(producer, topic, value, records, tasks)
            )
        show(f"produce {topic}", result, as_json=as_json)
        return 0

    run(bench)


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
