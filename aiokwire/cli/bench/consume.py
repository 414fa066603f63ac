"""`aiokwire bench consume TOPIC`: read what is there, from the beginning to the end."""

from __future__ import annotations

from typing import Any

import click

from aiokwire.cli.bench.measure import Stopwatch, show
from aiokwire.cli.options import CONNECT, bootstrap_option, client_options
from aiokwire.cli.running import run
from aiokwire.types import TopicPartition


@click.command("consume")
@click.argument("topic")
@bootstrap_option
@click.option(
    "--records",
    "-n",
    type=click.IntRange(1),
    help="Stop after this number of records (default: at the end of the topic).",
)
@click.option("--json", "as_json", is_flag=True)
@client_options
def command(topic: str, bootstrap: str, records: int | None, as_json: bool, settings: dict[str, Any]) -> None:
    """Consume TOPIC from its beginning."""
    options = {"auto_offset_reset": "earliest", **CONNECT, **settings}

    async def bench() -> int:
        from aiokwire import Consumer

        async with Consumer(bootstrap_servers=bootstrap, **options) as consumer:
            assigned = [
                TopicPartition(topic, number) for number in await consumer.partitions_for_topic(topic, timeout=10)
            ]
            begins = await consumer.beginning_offsets(assigned)
            there = sum((await consumer.end_offsets(assigned)).values()) - sum(begins.values())
            wanted = there if records is None else min(records, there)
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

    run(bench)
