"""The driver's state of a stream between microbatches, and its requests for each of them.

Used by `stream`. The rules are in `planning`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from aiokwire.errors import KafkaError
from aiokwire.spark.failures import one_sentence
from aiokwire.spark.offsets import Offsets, from_json, to_json
from aiokwire.spark.options import SourceOptions
from aiokwire.spark.session import session_for
from aiokwire.spark.source import planning
from aiokwire.spark.source.batch import Task, on_loss, tasks_of
from aiokwire.spark.source.lookup import Lookup
from aiokwire.spark.source.planning import Loss
from aiokwire.types import GroupMetadata, OffsetAndMetadata, TopicPartition

T = TypeVar("T")
Kept = dict[str, Any]  # offsets as Spark checkpoints them

logger: logging.Logger = logging.getLogger(__name__)


def _run(options: SourceOptions, coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        session = session_for(options.consumer)
    except BaseException:
        coroutine.close()
        raise
    return session.wait(coroutine)


class Progress:
    """The progress of one query. Used by one thread, in one process of the driver."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._initial: Kept | None = None  # Spark asks twice, and must receive the same offsets
        self._frozen: Offsets | None = None  # where an AvailableNow run ends
        self._latest: Offsets = {}
        self._ids: dict[str, bytes] = {}  # of the topics, at the last lookup
        self._recreated: set[str] = set()  # topics that the next microbatch reads from their start
        self._last_trigger = -math.inf  # the loop's clock
        self._committed: Offsets = {}  # the offsets committed to the group

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the process's loop.

        Raises: KafkaError: from the coroutine, or because no broker could be reached.
        """
        with one_sentence():
            return _run(self._options, coroutine)

    @property
    def _lookup(self) -> Lookup:
        return Lookup(session_for(self._options.consumer).client, self._options)

    # --- offsets ------------------------------------------------------------------------------------------------------

    async def initial(self) -> Kept:
        """Return the offsets at which a query without a checkpoint begins."""
        if self._initial is None:
            lookup = self._lookup
            partitions, self._ids = await lookup.partitions()
            earliest = await lookup.earliest(partitions)
            latest = await lookup.latest(partitions)
            if self._frozen is not None:  # later records are left to the next run
                latest |= {tp: offset for tp, offset in self._frozen.items() if tp in latest}
            start = await lookup.resolve(self._options.start, partitions, earliest, latest, is_end=False)
            start, losses = planning.without_lost(start, earliest, latest)
            on_loss(losses, self._options.on_data_loss)
            self._initial = self._keep(start)
        return self._initial

    async def freeze(self) -> None:
        """Leave records that are produced from now on to the next run."""
        partitions, self._ids = await self._lookup.partitions()
        self._frozen = await self._lookup.latest(partitions)

    async def next_end(self, kept: Kept, limit: ReadLimit) -> Kept:
        """Return the end of the microbatch that begins at `kept`; `kept` to wait for records."""
        start, ids = from_json(kept)
        await self._commit_to_group(start)
        available = await self._available()
        self._note_new_topics(start, ids)
        begin = await self._begin(start, available)
        end = available
        if not isinstance(limit, ReadAllAvailable):
            end = await self._admit(begin, available)
        if self._must_wait(planning.lag(begin, available)) or (end == start and not self._recreated):
            return kept
        self._last_trigger = asyncio.get_running_loop().time()
        return self._keep(end)

    async def _available(self) -> Offsets:
        if self._frozen is not None:
            self._latest = self._frozen
            return dict(self._frozen)
        partitions, topic_ids = await self._lookup.partitions()
        self._latest = await self._lookup.latest(partitions)
        self._recreated |= {name for name, known in topic_ids.items() if self._ids.get(name, known) != known}
        self._ids = topic_ids
        return dict(self._latest)

    def _note_new_topics(self, start: Mapping[TopicPartition, int], ids: Mapping[str, str]) -> None:
        """Detect recreated topics: the unread records of the deleted ones are lost.

        Raises: LostData: with `onDataLoss=fail`.
        """
        now = {name: topic_id.hex() for name, topic_id in self._ids.items()}
        self._recreated |= {name for name, known in ids.items() if now.get(name, known) != known}
        losses = [
            Loss(*tp, offset, offset, "the topic was deleted and recreated")
            for tp, offset in start.items()
            if tp.topic in self._recreated
        ]
        on_loss(losses, self._options.on_data_loss)

    async def _begin(self, start: Mapping[TopicPartition, int], available: Mapping[TopicPartition, int]) -> Offsets:
        """Return where each partition begins: at its start if it is new or lost data."""
        gone = [Loss(*tp, start[tp], start[tp], "the partition was deleted") for tp in set(start) - set(available)]
        back = [
            Loss(*tp, start[tp], start[tp], f"the log ends at {end}: it was recreated or truncated")
            for tp, end in available.items()
            if start.get(tp, 0) > end and tp.topic not in self._recreated
        ]
        on_loss(gone + back, self._options.on_data_loss)
        fresh = [tp for tp, end in available.items() if self._is_fresh(tp, start, end)]
        return {tp: start[tp] for tp in available if tp in start} | await self._lookup.earliest(fresh)

    def _is_fresh(self, tp: TopicPartition, start: Mapping[TopicPartition, int], end: int) -> bool:
        return tp.topic in self._recreated or start.get(tp, end + 1) > end

    async def _admit(self, begin: Offsets, available: Offsets) -> Offsets:
        options = self._options
        end = available
        if options.max_offsets_per_trigger is not None:
            end = planning.admit(begin, end, options.max_offsets_per_trigger)
        if options.max_bytes_per_trigger is not None:
            lagging = {tp: begin[tp] for tp in end if begin[tp] < end[tp]}
            sizes = await self._lookup.bytes_per_offset(lagging)
            end = planning.admit_bytes(begin, end, options.max_bytes_per_trigger, sizes)
        return end

    def _must_wait(self, offsets: int) -> bool:
        if self._frozen is not None:
            return False  # the end is fixed
        waited = asyncio.get_running_loop().time() - self._last_trigger
        least = self._options.min_offsets_per_trigger
        return planning.must_wait(
            offsets=offsets, least=least, waited=waited, max_delay=self._options.max_trigger_delay
        )

    def _keep(self, offsets: Mapping[TopicPartition, int]) -> Kept:
        ids = {}
        if self._options.track_topic_ids:
            topics = {tp.topic for tp in offsets}
            ids = {name: topic_id.hex() for name, topic_id in self._ids.items() if name in topics}
        return to_json(offsets, ids)

    def report(self) -> Kept | None:
        """Return the ends of the partitions at the last lookup."""
        return self._keep(self._latest) if self._latest else None

    # --- tasks --------------------------------------------------------------------------------------------------------

    async def tasks(self, start_kept: Kept, end_kept: Kept) -> list[Task]:
        """Return the tasks of a microbatch, which an earlier run may have begun."""
        start, start_ids = from_json(start_kept)
        end, end_ids = from_json(end_kept)
        lookup = self._lookup
        if not self._ids:
            _, self._ids = await lookup.partitions()
        self._recreated |= {name for name, known in start_ids.items() if end_ids.get(name, known) != known}
        fresh = [tp for tp, offset in end.items() if self._is_fresh(tp, start, offset)]
        begin = start | await lookup.earliest(fresh)
        self._recreated.clear()
        ranges = planning.ranges_between(begin, end)
        earliest = await lookup.earliest([each.tp for each in ranges])
        latest = await lookup.latest([each.tp for each in ranges])
        begin, losses = planning.without_lost({each.tp: each.start for each in ranges}, earliest, latest)
        until, cut_off = planning.until_end({tp: end[tp] for tp in begin}, latest)
        on_loss(losses + cut_off, self._options.on_data_loss)
        ranges = planning.ranges_between(begin, until)
        sizes: dict[TopicPartition, float] = {}
        if self._options.max_bytes_per_partition is not None:
            sizes = await lookup.bytes_per_offset({each.tp: each.start for each in ranges})
        return tasks_of(ranges, self._options, sizes, self._ids)

    # --- the group ----------------------------------------------------------------------------------------------------

    async def committed(self, kept: Kept) -> None:
        """Note that Spark has finished a microbatch."""
        await self._commit_to_group(from_json(kept)[0])

    async def _commit_to_group(self, done: Offsets) -> None:
        """Commit for tools that show lag; a failure is only logged, as the checkpoint decides."""
        group = self._options.commit_group
        if group is None or done == self._committed:
            return
        session = session_for(self._options.consumer)
        offsets = {tp: OffsetAndMetadata(offset) for tp, offset in done.items()}
        try:
            timeout = self._options.consumer.request_timeout
            from aiokwire.group import GroupOffsets

            await GroupOffsets(session.client, group).commit(offsets, GroupMetadata(group), timeout=timeout)
        except KafkaError as error:
            logger.warning("cannot commit the stream's offsets to group %r, whose lag is stale: %s", group, error)
        else:
            self._committed = done
