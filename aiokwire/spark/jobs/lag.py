"""`lag`: the lag of streaming queries, from their checkpoints and the ends of the logs.

Needs neither Spark nor Java. Spark writes the end of microbatch n to `offsets/<n>` before it runs,
and `commits/<n>` when it is done: the position is the end of the last batch that has both.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from aiokwire.admin import Admin
from aiokwire.cluster import LATEST
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ConfigurationError
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.offsets import Offsets, from_json
from aiokwire.types import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# Written by Spark for a source that has no offset yet.
_NOTHING: Final = "-"


@dataclasses.dataclass(frozen=True)
class Position:
    """The position of a source of a query."""

    query: str
    """The query's folder in the checkpoint; empty if the checkpoint is that of a single query."""
    source: int
    """Its number among the query's sources."""
    batch_id: int
    """The last finished microbatch; -1: none, and the offsets are the end of the first."""
    offsets: Offsets


@dataclasses.dataclass(frozen=True)
class PartitionLag:
    """The lag of a query in one partition."""

    query: str
    source: int
    batch_id: int
    topic: str
    partition: int
    position: int | None
    """The offset that the next microbatch begins at; None before the first has finished."""
    end: int | None
    """The end of the log; None if the partition no longer exists."""

    @property
    def lag(self) -> int | None:
        """Offsets between the two, at least as many as records; None if one of them is unknown."""
        return None if self.end is None or self.position is None else max(0, self.end - self.position)


def read_positions(checkpoint: str | os.PathLike[str]) -> list[Position]:
    """Read the positions of a query, or of all queries of a pipeline, from a checkpoint.

    `checkpoint` is a local folder or a URI. Checkpoints of spark-sql-kafka are supported, too.

    Raises: ConfigurationError: the checkpoint does not exist, or has no offsets of Kafka.
    """
    store = Store.at(checkpoint)
    names = [""] if store.files("offsets") else store.folders()
    found = [position for name in names for position in _positions(store, name)]
    if not found:
        raise ConfigurationError(
            f"{os.fspath(checkpoint)!r} is not the checkpoint of a streaming query that reads Kafka, or of a pipeline "
            "of such queries: its folder 'offsets' has no offsets of topics"
        )
    return found


def _positions(store: Store, query: str) -> Iterator[Position]:
    folder = f"{query}/" if query else ""
    planned, done = _numbers(store.files(f"{folder}offsets")), _numbers(store.files(f"{folder}commits"))
    last = max(done.intersection(planned), default=None)
    if last is None and not planned:
        return
    number = min(planned) if last is None else last
    text = store.read(f"{folder}offsets/{number}")
    for source, line in enumerate((text or b"").decode("utf-8", "replace").splitlines()[2:]):  # version, metadata
        offsets = _offsets(line)
        if offsets:
            yield Position(query, source, -1 if last is None else last, offsets)


def _numbers(paths: Sequence[str]) -> set[int]:
    """Return the numbers of batches with a file; Spark stores checksums and drafts, too."""
    names = (path.rpartition("/")[2] for path in paths)
    return {int(name) for name in names if name.isdecimal()}


def _offsets(line: str) -> Offsets:
    """Parse a source's offsets; empty if it is not a source of Kafka."""
    if line.strip() == _NOTHING:
        return {}
    try:
        kept: Any = json.loads(line)
        return from_json(kept)[0] if isinstance(kept, dict) else {}
    except (ValueError, ConfigurationError):
        return {}


def position_of(query: StreamingQuery) -> list[Position]:
    """Return the positions of a query that runs in this session, from its last progress."""
    progress: Any = query.lastProgress
    sources = [] if progress is None else progress["sources"]
    texts = [each["endOffset"] for each in sources]
    found = [_offsets(text if isinstance(text, str) else json.dumps(text)) for text in texts]
    name = query.name or str(query.id)
    return [Position(name, at, int(progress["batchId"]), offsets) for at, offsets in enumerate(found) if offsets]


async def find_lag(admin: Admin, positions: Sequence[Position], *, committed: bool = False) -> list[PartitionLag]:
    """Look up the ends of the logs; with `committed`, the last stable offsets.

    Raises: KafkaError: a broker cannot be reached or refuses; a missing partition is not an error.
    """
    isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    places = sorted({tp for each in positions for tp in each.offsets})
    ends = await _ends(admin, places, isolation)
    return [
        PartitionLag(each.query, each.source, each.batch_id, *tp, None if each.batch_id < 0 else offset, ends.get(tp))
        for each in positions
        for tp, offset in sorted(each.offsets.items())
    ]


async def _ends(
    admin: Admin, places: Sequence[TopicPartition], isolation: IsolationLevel
) -> Mapping[TopicPartition, int]:
    described = await admin.describe_topics(sorted({tp.topic for tp in places}))
    for error in described.errors.values():
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
    topics = described.succeeded.values()
    existing = {TopicPartition(topic.name, each.partition) for topic in topics for each in topic.partitions}
    found = await admin.list_offsets({tp: LATEST for tp in places if tp in existing}, isolation_level=isolation)
    return {tp: each.offset for tp, each in found.items()}


def lag(
    checkpoint: str | os.PathLike[str] | StreamingQuery, *, bootstrap: str, committed: bool = False, **options: Any
) -> list[PartitionLag]:
    """Return the lag of a query, given its checkpoint or the running query itself.

    `options` are those of `Admin`. Also works in a notebook, where a loop is running.

    Raises: ConfigurationError: the checkpoint has no offsets of topics; KafkaError: a broker cannot
        be reached or refuses.
    """
    from aiokwire.spark.jobs.spark_session import on_loop

    positions = read_positions(checkpoint) if isinstance(checkpoint, (str, os.PathLike)) else position_of(checkpoint)

    async def look() -> list[PartitionLag]:
        async with Admin(bootstrap, **options) as admin:
            return await find_lag(admin, positions, committed=committed)

    return on_loop(look)
