"""`aiokwire spark archive`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiokwire.cli.connection import bootstrap_option, source_connection
from aiokwire.cli.spark.options import duration_option, size_option, source_options, spark_options
from aiokwire.cli.spark.running import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aiokwire.spark.pipelines import Progress, Stop


@click.command("archive")
@click.argument("topics", nargs=-1)
@click.option("--to", "path", required=True, metavar="PATH", help="A directory, or a URI such as s3://bucket/lake.")
@bootstrap_option
@source_options
@click.option("--hourly", is_flag=True, help="Create a directory for each hour, not only for each date.")
@click.option(
    "--compression",
    type=click.Choice(("snappy", "zstd", "lz4", "gzip", "none")),
    default="snappy",
    show_default=True,
    help="Compression codec of the Parquet files.",
)
@click.option(
    "--file-size", default="256m", show_default=True, callback=size_option, help="Approximate maximum size of a file."
)
@click.option(
    "--round",
    "round_records",
    default=20_000_000,
    show_default=True,
    help="Number of records per round, and so per manifest.",
)
@click.option(
    "--every",
    metavar="TIME",
    callback=duration_option,
    help="Run until stopped, with this interval between rounds, such as 30s.",
)
@click.option("--commit-group", metavar="GROUP", help="Group to which the archive commits its offsets, for lag tools.")
@click.option("--compact", is_flag=True, help="Only merge small files of the archive.")
@click.option("--verify", "check", is_flag=True, help="Only compare the files with the manifests.")
@spark_options
def command(
    topics: tuple[str, ...],
    *,
    path: str,
    bootstrap: str,
    options: dict[str, str],
    hourly: bool,
    compression: str,
    file_size: int,
    round_records: int,
    every: float | None,
    commit_group: str | None,
    compact: bool,
    check: bool,
    master: str | None,
    conf: dict[str, str],
    as_json: bool,
) -> None:
    """Archive new records of TOPICS as Parquet.

    Run the command again to continue: committed records are not read again, and uncommitted ones
    leave nothing behind. `--option`, with the names of the Spark source, sets the start of a new
    archive and the reaction to lost data.
    """
    if compact and check:
        raise click.UsageError("--compact and --verify cannot be combined: run one after the other")
    if (compact or check) and topics:
        raise click.UsageError("--compact and --verify work on the whole archive: leave out the topics")
    if not (compact or check or topics or {"assign", "subscribepattern"} & {name.lower() for name in options}):
        raise click.UsageError("name the topics, or choose them with --option assign=... or subscribePattern=...")

    given = {**source_connection(), **options}

    def work(spark: SparkSession, stop: Stop, progress: Progress) -> object:
        from aiokwire.spark import pipelines

        if check:
            return pipelines.verify(path, spark=spark, stop=stop, progress=progress)
        if compact:
            return pipelines.compact(path, file_bytes=file_size, compression=compression, spark=spark, stop=stop)
        return pipelines.archive(
            topics,
            path,
            bootstrap=bootstrap,
            options=given,
            hourly=hourly,
            compression=compression,
            file_bytes=file_size,
            round_records=round_records,
            every=every,
            commit_group=commit_group,
            spark=spark,
            stop=stop,
            progress=progress,
        )

    run(work, title="archive", master=master, conf=conf, as_json=as_json)
