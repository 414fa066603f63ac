"""`aiokwire spark`: the pipelines on Spark, one verb per module, imported when it is called.

```
running.py   runs a verb: Spark, signals, errors in one line, the exit status
options.py   shared options
```
"""

from __future__ import annotations

import click

from aiokwire.cli.connection import bootstrap_for_verbs
from aiokwire.cli.lazy import LazyGroup

VERBS = {
    "archive": ("aiokwire.cli.spark.archive", "Write topics to Parquet, each record once."),
    "replay": ("aiokwire.cli.spark.replay", "Write Parquet back to a topic."),
    "audit": ("aiokwire.cli.spark.audit", "Look for gaps, duplicates, disorder and skew in a topic."),
    "sql": ("aiokwire.cli.spark.sql", "Query topics as tables."),
    "lag": ("aiokwire.cli.spark.lag", "Show the lag of streaming queries, from their checkpoint."),
    "run": ("aiokwire.cli.spark.run", "Run a pipeline declared in a file."),
    "demo": ("aiokwire.cli.spark.demo", "Compute hourly delays by airline, exactly once."),
}


@click.command("spark", cls=LazyGroup, verbs=VERBS)
@bootstrap_for_verbs
def command() -> None:
    """Archive, replay, audit and query topics on Spark; needs aiokwire[spark] and Java 17."""
