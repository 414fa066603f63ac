"""Clusters: waiting for executors, the size of shuffles, folders that executors cannot reach.

Used by `pipeline`. Does nothing on a single machine (`local[...]`).
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from aiokwire.spark.jobs.stopping import LOOK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aiokwire.spark.jobs.progress import Progress
    from aiokwire.spark.jobs.stopping import Stop

SHUFFLE: Final = "spark.sql.shuffle.partitions"
_SPARKS_DEFAULT: Final = "200"
# The wait for a first executor, after which Spark chooses the size, and for another after the last one (seconds).
EXECUTOR_PATIENCE: Final = 60.0
SETTLED: Final = 2.0


def is_local(master: str) -> bool:
    """Whether Spark runs in one process of this machine."""
    return master == "local" or master.startswith("local[")


def count_executors(spark: SparkSession) -> int:
    """Return the count of registered executors; on a single machine the driver is one."""
    context: Any = spark.sparkContext
    registered = int(context._jsc.sc().getExecutorMemoryStatus().size())  # includes the driver
    return registered if is_local(context.master) else registered - 1


def waiting_note(spark: SparkSession) -> str:
    """Return a note for a job that waits for an executor; empty if there is one."""
    if count_executors(spark):
        return ""
    return f"waiting for an executor: {spark.sparkContext.master} has no worker with free cores and memory"


def size_shuffles(spark: SparkSession, given: Collection[str], stop: Stop, progress: Progress) -> None:
    """On a cluster, set unset partitions of shuffles to the cores of its executors.

    A query with state stores the number in its checkpoint: wait for the executors first. `given`
    are the settings of the pipeline.
    """
    context = spark.sparkContext
    if is_local(str(context.master)) or SHUFFLE in given or context.getConf().contains(SHUFFLE):
        return
    if spark.conf.get(SHUFFLE) != _SPARKS_DEFAULT or context.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return
    if _wait_for_executors(spark, stop, progress):
        spark.conf.set(SHUFFLE, str(context.defaultParallelism))


def _wait_for_executors(spark: SparkSession, stop: Stop, progress: Progress) -> bool:
    """Wait until no further executor registers; return whether there are any."""
    began = changed = time.perf_counter()
    before = 0
    while not stop.requested and (now := time.perf_counter()) - began < EXECUTOR_PATIENCE:
        count = count_executors(spark)
        if count != before:
            before, changed = count, now
        if count and now - changed >= SETTLED:
            return True
        progress.update(note=waiting_note(spark))
        stop.pause(LOOK)
    return before > 0


def folder_notes(folders: Collection[str], master: str, default_file_system: str) -> list[str]:
    """Return warnings about folders that differ on each machine of a cluster."""
    if is_local(master) or not default_file_system.startswith("file:"):
        return []
    relative = sorted(folder for folder in folders if "://" not in folder and not folder.startswith(("/", "file:")))
    return [
        f"{folder!r} is relative to the driver's working directory, which executors do not share: use a URI that all "
        "of them reach, such as hdfs://... or s3a://..., or a folder that is mounted at the same path everywhere"
        for folder in relative
    ]
