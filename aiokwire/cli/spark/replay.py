"""`aiokwire spark replay`."""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING

import click

from aiokwire.cli.connection import bootstrap_option, source_connection
from aiokwire.cli.spark.options import source_options, spark_options
from aiokwire.cli.spark.running import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aiokwire.spark.pipelines import Progress, Stop


def parse_pace(_ctx: click.Context, _param: click.Parameter, text: str | None) -> float | None:
    """Parse `10x` to 10.0; `fast` to None.

    Raises: BadParameter: it is not a pace.
    """
    if text is None or text == "fast":
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)x?", text.strip().lower())
    if match is None or not float(match[1]):
        raise click.BadParameter(f"{text!r} is not a pace: use 1x, 10x or fast")
    return float(match[1])


def parse_time(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    """Parse milliseconds, or a date or time in ISO 8601 (UTC by default), to milliseconds.

    Raises: BadParameter: it is neither.
    """
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a time: use 2026-11-21 or 2026-11-21T14:30:00Z") from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return round(time.timestamp() * 1000)


@click.command("replay")
@click.argument("path")
@click.option("--to", "topic", metavar="TOPIC", help="Topic to write to (default: the topic each record came from).")
@bootstrap_option
@click.option("--topic", "topics", multiple=True, help="Replay only this topic of the archive; repeatable.")
@click.option(
    "--from", "--since", "since", metavar="TIME", callback=parse_time, help="Replay only records from this time on."
)
@click.option("--until", metavar="TIME", callback=parse_time, help="Replay only records before this time.")
@click.option("--from-offsets", metavar="JSON", help='Offsets to begin at, such as {"orders":{"0":100}}.')
@click.option("--to-offsets", metavar="JSON", help="Offsets to end before.")
@click.option(
    "--pace",
    default="fast",
    show_default=True,
    callback=parse_pace,
    help="1x: at the pace at which they were sent; 10x: ten times as fast.",
)
@click.option("--rekey", is_flag=True, help="Choose partitions by key (default: keep the original partitions).")
@click.option("--coordinates", is_flag=True, help="Add headers with the topic, partition and offset in the archive.")
@click.option(
    "--delivery", type=click.Choice(("at-least-once", "exactly-once")), default="at-least-once", show_default=True
)
@click.option(
    "--checkpoint", metavar="PATH", help="Directory that keeps the position of the replay, so that it can be resumed."
)
@click.option("--round", "round_records", default=2_000_000, show_default=True, help="Number of records per round.")
@source_options
@spark_options
def command(
    path: str,
    *,
    topic: str | None,
    bootstrap: str,
    topics: tuple[str, ...],
    since: int | None,
    until: int | None,
    from_offsets: str | None,
    to_offsets: str | None,
    pace: float | None,
    rekey: bool,
    coordinates: bool,
    delivery: str,
    checkpoint: str | None,
    round_records: int,
    options: dict[str, str],
    master: str | None,
    conf: dict[str, str],
    as_json: bool,
) -> None:
    """Write the records of the archive at PATH, or of other Parquet with the sink's columns, to a
    topic.

    With --checkpoint, start it again to resume. With --delivery exactly-once as well, each record
    is written once, even across crashes and restarts.
    """

    given = {**source_connection(), **options}

    def work(spark: SparkSession, stop: Stop, progress: Progress) -> object:
        from aiokwire.spark import pipelines

        select = None
        if topics or since is not None or until is not None or from_offsets or to_offsets:
            select = pipelines.Selection.of(topics, since, until, from_offsets, to_offsets)
        return pipelines.replay(
            path,
            topic,
            bootstrap=bootstrap,
            select=select,
            pace=pace,
            rekey=rekey,
            coordinates=coordinates,
            delivery=delivery,
            checkpoint=checkpoint,
            options=given,
            round_records=round_records,
            spark=spark,
            stop=stop,
            progress=progress,
        )

    run(work, title="replay", master=master, conf=conf, as_json=as_json)
