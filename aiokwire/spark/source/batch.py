"""`spark.read`: plans on the driver, reads in the tasks.

Spark plans each action separately, so that "latest" may be a later offset in the next action.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from aiokwire.spark.failures import one_sentence
from aiokwire.spark.offsets import Offsets
from aiokwire.spark.options import OnDataLoss, SourceOptions
from aiokwire.spark.session import Session, session_for
from aiokwire.spark.source import planning
from aiokwire.spark.source.convert import Converter
from aiokwire.spark.source.fetching import LostData
from aiokwire.spark.source.lookup import Lookup
from aiokwire.spark.source.planning import Bounds, Range
from aiokwire.spark.source.scan import Scan, arrow_batches
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from aiokwire.spark.decode.dead_letters import DeadLetters

logger: logging.Logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Task(InputPartition):
    """The ranges that one task reads."""

    ranges: tuple[Range, ...]
    topic_ids: Mapping[str, bytes]

    def __post_init__(self) -> None:
        super().__init__(None)


def read_task(options: SourceOptions, schema: StructType, task: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield a task's records. Runs in Spark's Python workers.

    Raises: LostData: with `onDataLoss=fail`; UndecodableRecord: with `mode=failfast`;
        DeadLettersFailed; KafkaError: a broker cannot be reached, or refuses.
    """
    if not isinstance(task, Task):
        return  # Spark's own partition, when there is nothing to read
    with one_sentence():
        yield from _read(options, schema, task)


def _read(options: SourceOptions, schema: StructType, task: Task) -> Iterator[pa.RecordBatch]:
    session = session_for(options.consumer)
    scan = Scan(session, options, task.ranges, task.topic_ids)
    pieces = scan.pieces()
    topic = options.decoding.dead_letter_topic
    dead_letters = _dead_letters(session, options, topic) if topic else None
    try:
        converter = Converter(options, schema, None if dead_letters is None else dead_letters.send)
        yield from arrow_batches(pieces, converter.new_columns, converter)
    finally:
        scan.close()
        if dead_letters is not None:
            dead_letters.close()


def _dead_letters(session: Session, options: SourceOptions, topic: str) -> DeadLetters:
    from aiokwire.spark.decode.dead_letters import DeadLetters  # the producer loads where it is needed

    return DeadLetters(session, options.consumer, topic)


def tasks_of(
    ranges: Sequence[Range],
    options: SourceOptions,
    sizes: Mapping[TopicPartition, float],
    topic_ids: Mapping[str, bytes],
) -> list[Task]:
    """Split ranges into tasks."""
    shares = planning.split(
        ranges,
        min_tasks=options.min_partitions,
        max_records=options.max_records_per_partition,
        max_bytes=options.max_bytes_per_partition,
        bytes_per_offset=sizes,
    )
    return [
        Task(share, {topic: topic_ids[topic] for topic in {each.topic for each in share} if topic in topic_ids})
        for share in shares
    ]


def on_loss(losses: Sequence[planning.Loss], policy: OnDataLoss) -> None:
    """Apply `onDataLoss` to missing offsets: fail, log, or ignore.

    Raises: LostData: with `onDataLoss=fail`.
    """
    if not losses:
        return
    if policy is OnDataLoss.FAIL:
        raise LostData(losses[0], also=losses[1:])
    if policy is OnDataLoss.REPORT:
        for loss in losses:
            logger.warning("data loss: %s", loss)


class BatchReader(DataSourceReader):
    """Reads from a start to an end."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._bounds = Bounds()

    def partitions(self) -> list[Any]:
        """Plan an action. Called by Spark on the driver."""
        return self._plan()

    def _plan(self) -> list[Any]:
        with one_sentence():
            session = session_for(self._options.consumer)
            plan = _Plan(Lookup(session.client, self._options), self._options, self._bounds)
            return list(session.wait(plan.tasks()))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a task's records. Called by Spark in the tasks."""
        return read_task(self._options, self._schema, partition)


class _Plan:
    """The offsets and tasks of one action."""

    def __init__(self, lookup: Lookup, options: SourceOptions, bounds: Bounds) -> None:
        self._lookup = lookup
        self._options = options
        self._bounds = bounds

    async def tasks(self) -> list[Task]:
        options = self._options
        partitions, topic_ids = await self._lookup.partitions()
        earliest = await self._lookup.earliest(partitions)
        latest = await self._lookup.latest(partitions)
        start = await self._lookup.resolve(options.start, partitions, earliest, latest, is_end=False)
        end = await self._lookup.resolve(options.end, partitions, earliest, latest, is_end=True)
        start, losses = planning.without_lost(start, earliest, latest)
        end, cut_off = planning.until_end(end, latest)
        on_loss(losses + cut_off, options.on_data_loss)
        ranges = await self._bounded(planning.ranges_between(start, end))
        sizes = await self._sizes(ranges)
        return tasks_of(ranges, options, sizes, topic_ids)

    async def _bounded(self, ranges: Sequence[Range]) -> list[Range]:
        """Return the ranges that the query's filters leave, by partition, offset and time."""
        ranges = self._bounds.cut(ranges)
        since = self._bounds.since
        if since is None or not ranges:
            return list(ranges)
        first = await self._lookup.later_than([each.tp for each in ranges], since)
        later: Offsets = {each.tp: max(each.start, first.get(each.tp, each.end)) for each in ranges}
        return planning.ranges_between(later, {each.tp: each.end for each in ranges})

    async def _sizes(self, ranges: Sequence[Range]) -> dict[TopicPartition, float]:
        if self._options.max_bytes_per_partition is None:
            return {}
        return await self._lookup.bytes_per_offset({each.tp: each.start for each in ranges})
