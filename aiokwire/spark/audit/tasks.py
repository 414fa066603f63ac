"""An audit's tasks: planned on the driver, run in Spark's workers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aiokwire.spark.audit.tally import PartitionTally, Tallying
from aiokwire.spark.jobs.ranges import Scope
from aiokwire.spark.options import OnDataLoss, SourceOptions
from aiokwire.spark.session import Session, session_for
from aiokwire.spark.source import planning
from aiokwire.spark.source.batch import Task, tasks_of
from aiokwire.spark.source.fetching import LostData, log_range
from aiokwire.spark.source.planning import Range
from aiokwire.spark.source.scan import Scan
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def tally_scope(spark: SparkSession, scope: Scope, options: SourceOptions, parallelism: int) -> list[PartitionTally]:
    """Count all records in Spark's tasks; return one tally for each partition."""
    ranges = planning.ranges_between(scope.start, scope.end)
    large = sum(each.size for each in ranges) > planning.SMALL
    if options.min_partitions is None and large:
        options = dataclasses.replace(options, min_partitions=parallelism)
    tasks = tasks_of(ranges, options, {}, scope.topic_ids)
    found: list[PartitionTally] = []
    if tasks:
        counting = spark.sparkContext.parallelize(tasks, len(tasks))
        found = counting.flatMap(functools.partial(tally_task, options)).collect()
    return merge_all(found, scope.start)


def tally_task(options: SourceOptions, task: Task) -> list[PartitionTally]:
    """Count a task's ranges.

    Raises: LostData: a log was truncated, or its topic recreated; KafkaError: see
        `Fetching.finish`.
    """
    session = session_for(options.consumer)
    return [_tally_range(session, options, each, task.topic_ids) for each in task.ranges]


def _tally_range(
    session: Session, options: SourceOptions, whole: Range, topic_ids: Mapping[str, bytes]
) -> PartitionTally:
    strict = dataclasses.replace(options, on_data_loss=OnDataLoss.FAIL)
    tallying = Tallying(whole)
    left = whole
    while left.size > 0:
        scan = Scan(session, strict, [left], topic_ids, keep_hidden=True)
        try:
            for piece in scan.pieces():
                tallying.add(piece.batches, piece.hidden)
            break
        except LostData as error:
            earliest, _ = session.wait(log_range(session.client, whole.tp, options.consumer.default_api_timeout))
            if earliest <= error.loss.start:
                raise
            # Retention has deleted the records meanwhile: a finding, not an error.
            left = left._replace(start=min(earliest, whole.end))
            tallying.skip_deleted(left.start)
    return tallying.finish()


def merge_all(tallies: Sequence[PartitionTally], start: Mapping[TopicPartition, int]) -> list[PartitionTally]:
    """Merge the tallies by partition; add empty ones for partitions without offsets to read."""
    found: dict[TopicPartition, PartitionTally] = {}
    for tally in sorted(tallies, key=lambda each: (each.tp, each.start)):
        before = found.get(tally.tp)
        found[tally.tp] = tally if before is None else before.merge(tally)
    for tp, offset in start.items():
        found.setdefault(tp, PartitionTally(*tp, offset, offset))
    return [found[tp] for tp in sorted(found)]
