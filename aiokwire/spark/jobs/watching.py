"""Progress of a batch job: how many of Spark's tasks are done. For the `tick` of `Stop.job`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiokwire.spark.jobs.progress import Progress
from aiokwire.spark.jobs.stopping import tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def watch(spark: SparkSession, progress: Progress, what: str) -> Callable[[], None]:
    """A function that shows where the running stages are."""

    def tick() -> None:
        done, total = tasks(spark)
        progress.update(done, total or None, note=what)

    return tick
