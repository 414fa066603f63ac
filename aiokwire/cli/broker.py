"""`aiokwire broker`: a broker until Ctrl-C."""

from __future__ import annotations

from typing import Any

import anyio
import click

from aiokwire.cli.options import pairs_option, parse_settings, parse_topic_partitions
from aiokwire.cli.running import run


@click.command("broker")
@click.option(
    "--listen", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT", help="Port 0 picks a free one."
)
@click.option("--data-dir", type=click.Path(file_okay=False), help="Where the log lives; without it, in memory only.")
@click.option("--topic", "topics", multiple=True, metavar="NAME:PARTITIONS", help="Create a topic; may be repeated.")
@pairs_option("--set", "settings", help="A broker config in snake_case", parse=parse_settings)
def command(listen: str, data_dir: str | None, topics: tuple[str, ...], settings: dict[str, Any]) -> None:
    """Run a broker: a real log on disk in Kafka's own format, for any Kafka client."""
    wanted = dict(parse_topic_partitions(topic) for topic in topics)

    async def serve() -> None:
        from aiokwire.broker import Broker

        async with Broker(data_dir, listen=listen, topics=wanted, **settings) as broker:
            print(f"listening on {broker.bootstrap_servers}", flush=True)
            await anyio.sleep_forever()

    run(serve)
