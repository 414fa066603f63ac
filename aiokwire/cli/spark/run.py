"""`aiokwire spark run`: runs a pipeline declared in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aiokwire.cli.connection import named_bootstrap, settings_options, source_connection
from aiokwire.cli.spark.options import parameter_options, spark_options
from aiokwire.cli.spark.running import before_spark, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aiokwire.spark.pipelines import Prepared, Progress, RunSummary, Stop


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@parameter_options
@settings_options
@click.option("--bootstrap", "-b", metavar="HOST:PORT", help="Brokers, instead of those in the file.")
@click.option(
    "--checkpoint", metavar="DIRECTORY", help="Directory for offsets and state, instead of the one in the file."
)
@click.option("--trigger", metavar="WHEN", help="available-now, once, or for instance 'every 10 seconds'.")
@click.option("--explain", is_flag=True, help="Show the pipeline with its columns, without running it.")
@click.option("--draw", type=click.Choice(["text", "mermaid", "svg"]), help="Like --explain, in this format.")
@click.option("--plan", is_flag=True, help="Like --explain, with Spark's plan of each sink.")
@spark_options
def command(
    *,
    file: Path,
    parameters: dict[str, str],
    bootstrap: str | None,
    checkpoint: str | None,
    trigger: str | None,
    explain: bool,
    draw: str | None,
    plan: bool,
    master: str | None,
    conf: dict[str, str],
    as_json: bool,
) -> None:
    """Run the pipeline of a TOML file, or of a Python file that defines `pipeline`, until it ends
    or is stopped.

    The file, its topics and its SQL are checked before anything is read or written.
    """
    explain = explain or draw is not None or plan
    connection, bootstrap = source_connection(), bootstrap or named_bootstrap()

    def prepared() -> Prepared:
        from aiokwire.spark.pipelines import prepare

        return prepare(
            file,
            parameters=parameters,
            bootstrap=bootstrap,
            checkpoint=checkpoint,
            trigger=trigger,
            connection=connection,
            brokers=not explain,
        )

    found = before_spark(prepared)

    def work(spark: SparkSession, stop: Stop, progress: Progress) -> RunSummary | None:
        if not explain:
            return found.run(spark, stop, progress)
        drawing = found.explain(spark, draw or "text", plan=plan)
        progress.close()
        click.echo(drawing)
        return None

    run(work, title=found.pipeline.name, master=master, conf=found.settings(master, conf), as_json=as_json)
