"""What a replay sends, in which rounds, and when. Decisions; the driver in `replay` does the rest.

A round is offsets of each partition of the archive. It is written down before it begins (`State`), so that a replay
that is started again repeats the very same round, or knows that it was committed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aiokwire.errors import ConfigurationError
from aiokwire.spark.archive.manifest import Archive, DataFile
from aiokwire.spark.offsets import Offsets, from_json, parse_by_partition, to_json
from aiokwire.spark.replay.tasks import Share
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


# --- what -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Selection:
    """What of an archive is replayed; None and empty where all of it is."""

    topics: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    """Milliseconds since the epoch, the second not included."""
    start: Mapping[TopicPartition, int] = dataclasses.field(default_factory=dict)
    end: Mapping[TopicPartition, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        topics: Sequence[str] = (),
        since: int | None = None,
        until: int | None = None,
        start: str | None = None,
        end: str | None = None,
    ) -> Selection:
        """The same with offsets as JSON: `{"orders":{"0":100}}`.

        Raises: ConfigurationError: they cannot be read.
        """
        return cls(
            tuple(topics),
            since,
            until,
            parse_by_partition(start, "the first offsets") if start else {},
            parse_by_partition(end, "the last offsets") if end else {},
        )

    def to_json(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        start, end = to_json(self.start), to_json(self.end)
        return {"topics": sorted(self.topics), "since": self.since, "until": self.until, "start": start, "end": end}

    def files(self, archive: Archive) -> list[DataFile]:
        """The files that may have some of it.

        Raises: ConfigurationError: a topic that the archive does not have.
        """
        there = {tp.topic for tp in archive.ends}
        for name in self.topics:
            if name not in there:
                raise ConfigurationError(
                    f"the archive has no topic {name!r}, only {', '.join(sorted(there)) or 'none'}"
                )
        return [file for file in archive.files if self._may_have(file)]

    def _may_have(self, file: DataFile) -> bool:
        if self.topics and file.topic not in self.topics:
            return False
        if self.since is not None and file.max_timestamp < self.since:
            return False
        if self.until is not None and file.min_timestamp >= self.until:
            return False
        return file.last >= self.start.get(file.tp, 0) and file.first < self.end.get(file.tp, file.first + 1)

    def bounds(self, files: Iterable[DataFile]) -> tuple[Offsets, Offsets]:
        """From where to where each partition of these files is read."""
        start: Offsets = {}
        end: Offsets = {}
        for file in files:
            start[file.tp] = min(start.get(file.tp, file.first), file.first)
            end[file.tp] = max(end.get(file.tp, 0), file.last + 1)
        return (
            {tp: max(offset, self.start.get(tp, 0)) for tp, offset in start.items()},
            {tp: min(offset, self.end.get(tp, offset)) for tp, offset in end.items()},
        )


def check_replayable(layout: Mapping[str, Any]) -> None:
    """Raises: ConfigurationError: the archive has decoded values, of which bytes cannot be made again."""
    for column in str(layout.get("schema", "")).split(", "):
        name, _, kind = column.partition(" ")
        if name.strip("`") in ("key", "value") and kind not in ("binary", "string"):
            raise ConfigurationError(
                f"the archive has {name.strip('`')} as {kind}, not as the bytes that were sent: it cannot be replayed"
            )


# --- who ------------------------------------------------------------------------------------------------------------


def shares(
    ranges: Sequence[Range], files: Sequence[DataFile], *, keep_partitions: bool, exactly_once: bool, tasks: int
) -> list[Share]:
    """The tasks of a round; with exactly-once, each partition of the target has one that writes to it.

    Where partitions are kept, a task has those of one number, of all topics. Where keys choose, a task that owns some
    of the target's partitions has to look at all records; without owners it has a partition of the archive.
    """
    sources = [(whole, tuple(file for file in files if _has(file, whole))) for whole in ranges]
    sources = [source for source in sources if source[1]]
    if exactly_once and not keep_partitions:
        return [Share(tuple(sources), (number, tasks)) for number in range(tasks)] if sources else []
    by_partition: dict[int, list[tuple[Range, tuple[DataFile, ...]]]] = {}
    for source in sources:
        number = source[0].partition if keep_partitions else len(by_partition)
        by_partition.setdefault(number, []).append(source)
    return [Share(tuple(found)) for found in by_partition.values()]


def _has(file: DataFile, whole: Range) -> bool:
    return file.tp == whole.tp and file.first < whole.end and file.last >= whole.start


# --- when -----------------------------------------------------------------------------------------------------------


class Timeline:
    """When each record of a partition is due: at its own time, but not before those of lower offsets."""

    def __init__(self, batches: Iterator[pa.RecordBatch], end: int, since: int | None, until: int | None) -> None:
        """`batches` have offset and timestamp, in the order of the offsets; `end` is where the partition ends."""
        self._batches = batches
        self._end = end
        self._since = since
        self._until = until
        self._offsets = np.empty(0, np.int64)
        self._due = np.empty(0, np.int64)
        self._latest = -1  # of all records before these

    @property
    def first(self) -> int | None:
        """When the next record is due that has a time; None when none has."""
        while True:
            later = self._due[self._due >= 0]
            if len(later):
                return int(later[0])
            if not self._more():
                return None

    def until(self, time: int) -> int:
        """The first offset that is not due at this time."""
        while not len(self._due) or self._due[-1] <= time:
            if not self._more():
                return self._end
        place = int(np.searchsorted(self._due, time, side="right"))
        self._offsets, self._due = self._offsets[place:], self._due[place:]
        return int(self._offsets[0])

    def _more(self) -> bool:
        import pyarrow as pa

        batch = next(self._batches, None)
        if batch is None:
            self._offsets, self._due = self._offsets[:0], self._due[:0]
            return False
        stamps: Any = batch.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        times = np.asarray(stamps) // 1000
        counts = times >= max(0, self._since or 0)
        if self._until is not None:
            counts &= times < self._until
        due = np.maximum.accumulate(np.where(counts, times, -1))  # what is left out waits for nothing
        due = np.maximum(due, self._latest)
        self._latest = int(due[-1])
        self._offsets = np.concatenate([self._offsets, np.asarray(batch.column("offset"))])
        self._due = np.concatenate([self._due, due])
        return True


# --- how far --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class State:
    """A replay's last round, as its checkpoint has it."""

    replay: str
    """Its name, for transactions and their ledger."""
    number: int
    """Of the round; the first is 0."""
    start: Offsets
    end: Offsets
    until: Offsets
    """Where the whole replay ends: what is archived later is for another one."""
    done: bool
    """Whether it is known to be written; else that is to be found out, or it is written again."""
    settings: Mapping[str, Any]
    """What must be the same when it goes on."""

    def encode(self) -> bytes:
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        fields |= {name: to_json(getattr(self, name)) for name in ("start", "end", "until")}
        return json.dumps(fields, indent=1).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes, place: str) -> State:
        """Raises: ConfigurationError: the checkpoint is of something else."""
        try:
            fields = json.loads(data)
            fields |= {name: from_json(fields[name])[0] for name in ("start", "end", "until")}
            return cls(**fields)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{place} is no checkpoint of a replay: {error!r}") from None

    def check(self, settings: Mapping[str, Any], place: str) -> None:
        """Raises: ConfigurationError: the replay was begun with other settings."""
        for name, value in settings.items():
            if self.settings.get(name) != value:
                raise ConfigurationError(
                    f"the replay whose checkpoint is {place} was begun with {name} {self.settings.get(name)!r}, which "
                    f"is not {value!r}: go on with that, or choose another checkpoint"
                )


@dataclasses.dataclass(frozen=True)
class Resumed:
    """Where a replay goes on."""

    number: int
    start: Offsets
    repeat: Offsets | None
    """Where the first round ends, when it is one that may be there already or not."""


def resume(state: State, committed: int | None, *, exactly_once: bool) -> Resumed:
    """What comes after the last round that a checkpoint has; `committed` is the last one that the ledger has.

    Raises: ConfigurationError: whether the round was written cannot be told.
    """
    if state.done or (exactly_once and committed is not None and committed >= state.number):
        return Resumed(state.number + 1, state.end, None)
    if exactly_once and committed is None and state.number > 0:
        raise ConfigurationError(
            f"whether round {state.number} of the replay was written cannot be told: the ledger, group "
            f"'{state.replay}.batches', has expired; look into the topic, and replay the rest by its offsets"
        )
    return Resumed(state.number, state.start, state.end)
