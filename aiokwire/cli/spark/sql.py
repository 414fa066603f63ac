"""`aiokwire spark sql QUERY`."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from aiokwire.cli.connection import bootstrap_option, source_connection
from aiokwire.cli.output import print_table
from aiokwire.cli.spark.options import source_options, spark_options
from aiokwire.cli.spark.running import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aiokwire.spark.pipelines import Progress, Query, Shown, Stop

# The default of --limit for a table: about the height of a terminal.
TABLE_ROWS = 50


def _by_topic(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Parse `TOPIC=FORMAT` or `TOPIC=FORMAT:SCHEMA`; a schema that begins with @ is a file name."""
    found = {}
    for text in given:
        topic, equals, decode = text.partition("=")
        if not equals or not topic or not decode:
            raise click.BadParameter(f"{text!r} is not TOPIC=string, TOPIC=json:SCHEMA or TOPIC=avro:SCHEMA")
        form, colon, schema = decode.partition(":")
        if schema.startswith("@"):
            try:
                schema = Path(schema[1:]).read_text(encoding="utf-8")
            except OSError as error:
                raise click.BadParameter(f"{schema[1:]}: {error.strerror}") from None
        found[topic] = f"{form}{colon}{schema}"
    return found


@click.command("sql")
@click.argument("query")
@bootstrap_option
@source_options
@click.option(
    "--decode",
    "-d",
    multiple=True,
    callback=_by_topic,
    metavar="TOPIC=FORMAT",
    help="Decode a topic's values: string, json:SCHEMA or avro:SCHEMA (@FILE reads the schema from a file).",
)
@click.option(
    "--decode-key", multiple=True, callback=_by_topic, metavar="TOPIC=FORMAT", help="The same for the topic's keys."
)
@click.option(
    "--from", "--start", "start", metavar="TIME", help="Read from this time on, such as 2026-01-31T12:00 (UTC)."
)
@click.option("--until", "--end", "end", metavar="TIME", help="Read up to this time.")
@click.option("--format", "form", type=click.Choice(["table", "json", "csv", "parquet"]), help="[default: table]")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Write the result to this file, or for Parquet to this directory."
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    help=f"Maximum number of rows; 0 for all. [default: {TABLE_ROWS} in a table, else all]",
)
@click.option("--explain", is_flag=True, help="Show what would be read and Spark's plan, without reading.")
@spark_options
def command(
    *,
    query: str,
    bootstrap: str,
    options: dict[str, str],
    decode: dict[str, str],
    decode_key: dict[str, str],
    start: str | None,
    end: str | None,
    form: str | None,
    output: Path | None,
    limit: int | None,
    explain: bool,
    master: str | None,
    conf: dict[str, str],
    as_json: bool,
) -> None:
    """Query topics as tables, such as "select count(*) from orders where timestamp > '2026-01-31'".

    A topic's columns are key, value, topic, partition, offset, timestamp, timestampType, and
    headers if QUERY names them. Write names with dots or dashes in backticks. Only columns that
    the query needs are decoded; conditions on topic, partition, offset and timestamp limit what is
    read.
    """
    form = form or ("json" if as_json else "table")
    if form == "parquet" and output is None:
        raise click.UsageError("--format parquet needs --output DIRECTORY")
    if limit is None and form == "table":
        limit = TABLE_ROWS

    given = {**source_connection(), **options}

    def work(spark: SparkSession, stop: Stop, progress: Progress) -> None:
        from aiokwire.spark.pipelines import sql

        prepared = sql(
            query,
            bootstrap=bootstrap,
            decode=decode,
            decode_keys=decode_key,
            start=start,
            end=end,
            options=given,
            spark=spark,
        )
        if explain:
            progress.close()
            print(prepared.explain())
            return
        try:
            _show(prepared, spark, stop, progress, form, output, limit or None)
        except BrokenPipeError:
            # `aiokwire spark sql ... | head`: the reader has closed the pipe. Keep the interpreter from flushing to it.
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - lives until the process ends

    run(work, title="sql", master=master, conf=conf)


def _show(
    query: Query, spark: SparkSession, stop: Stop, progress: Progress, form: str, output: Path | None, limit: int | None
) -> None:
    from aiokwire.spark.pipelines import RowForm, take_rows, watch, write_parquet, write_rows

    began = time.perf_counter()
    tick = watch(spark, progress, "tasks")
    if form == "parquet":
        frame = query.frame if limit is None else query.frame.limit(limit)
        stop.job(spark, lambda: write_parquet(frame, str(output)), tick=tick)
        progress.close()
        print(f"written to {output} in {time.perf_counter() - began:.1f} s", file=sys.stderr)
        return
    if form == "table" and output is None:
        rows, shown = stop.job(spark, lambda: take_rows(query.frame, limit), tick=tick)
        progress.close()
        print_table("", query.frame.columns, rows)
    else:
        lines = RowForm.CSV if form == "csv" else RowForm.JSON

        def write() -> Shown:
            with _opened(output) as out:
                return write_rows(query.frame, lines, out, limit=limit, check=stop.check)

        shown = stop.job(spark, write)
    more = ", there are more: see --limit" if shown.more else ""
    print(f"{shown.rows:,} rows in {time.perf_counter() - began:.1f} s{more}", file=sys.stderr)


@contextlib.contextmanager
def _opened(output: Path | None) -> Iterator[TextIO]:
    """Open a file that is renamed to `output` at the end; by default the standard output."""
    if output is None:
        yield sys.stdout
        return
    unfinished = output.with_name(f"{output.name}.part")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            yield file
        os.replace(unfinished, output)
    finally:
        unfinished.unlink(missing_ok=True)
