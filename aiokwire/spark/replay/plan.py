"""The decisions of a replay: its records, its rounds, and their schedule. `replay` runs them.

A round is a range of offsets of each partition of the archive. It is stored before it begins
(`State`), so that a restarted replay repeats exactly this round, or finds it committed.
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
from aiokwire.spark.replay.tasks import Share, meets
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa


# --- selection ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Selection:
    """The part of an archive to replay; None and empty fields select everything."""

    topics: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    """Milliseconds since the epoch, `until` exclusive."""
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
        """Build a selection with offsets from JSON: `{"orders":{"0":100}}`.

        Raises: ConfigurationError: the offsets are invalid.
        """
        return cls(
            tuple(topics),
            since,
            until,
            parse_by_partition(start, "the first offsets") if start else {},
            parse_by_partition(end, "the last offsets") if end else {},
        )

    def to_json(self) -> dict[str, Any]:
        """Return the selection as it is stored in the checkpoint."""
        start, end = to_json(self.start), to_json(self.end)
        return {"topics": sorted(self.topics), "since": self.since, "until": self.until, "start": start, "end": end}

    def files(self, archive: Archive) -> list[DataFile]:
        """Return the files that may have selected records.

        Raises: ConfigurationError: the archive does not have a topic.
        """
        archived = {tp.topic for tp in archive.ends}
        for name in self.topics:
            if name not in archived:
                raise ConfigurationError(
                    f"the archive has no topic {name!r}, only {', '.join(sorted(archived)) or 'none'}"
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
        """Return the offsets at which each partition of these files starts and ends."""
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
    """Raises: ConfigurationError: the archive has decoded values, not the original bytes."""
    for column in str(layout.get("schema", "")).split(", "):
        name, _, kind = column.partition(" ")
        if name.strip("`") in ("key", "value") and kind not in ("binary", "string"):
            raise ConfigurationError(
                f"the archive has {name.strip('`')} as {kind}, not as the original bytes: it cannot be replayed"
            )


# --- tasks ----------------------------------------------------------------------------------------------------------


def shares(
    ranges: Sequence[Range], files: Sequence[DataFile], *, keep_partitions: bool, exactly_once: bool, tasks: int
) -> list[Share]:
    """Return the tasks of a round; with exactly-once, one task writes each target partition.

    If partitions are kept, a task has the partitions of one number, of all topics. If keys choose,
    a task that owns target partitions reads all records; without owners it reads one partition.
    """
    sources = [(whole, tuple(file for file in files if meets(file, whole))) for whole in ranges]
    sources = [source for source in sources if source[1]]
    if exactly_once and not keep_partitions:
        return [Share(tuple(sources), (number, tasks)) for number in range(tasks)] if sources else []
    by_partition: dict[int, list[tuple[Range, tuple[DataFile, ...]]]] = {}
    for source in sources:
        number = source[0].partition if keep_partitions else len(by_partition)
        by_partition.setdefault(number, []).append(source)
    return [Share(tuple(found)) for found in by_partition.values()]


# --- schedule -------------------------------------------------------------------------------------------------------


class Timeline:
    """The schedule of a partition: each record is due at its time, but not before lower offsets."""

    def __init__(self, batches: Iterator[pa.RecordBatch], end: int, since: int | None, until: int | None) -> None:
        """`batches` have offset and timestamp, in offset order; `end` ends the partition."""
        self._batches = batches
        self._end = end
        self._since = since
        self._until = until
        self._offsets = np.empty(0, np.int64)
        self._due = np.empty(0, np.int64)
        self._latest = -1  # of all records before these

    @property
    def first(self) -> int | None:
        """The time at which the next record with a timestamp is due, or None."""
        while True:
            later = self._due[self._due >= 0]
            if len(later):
                return int(later[0])
            if not self._more():
                return None

    def until(self, time: int) -> int:
        """Return the first offset that is not due at this time."""
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
        due = np.maximum.accumulate(np.where(counts, times, -1))  # records that are not selected are due at once
        due = np.maximum(due, self._latest)
        self._latest = int(due[-1])
        self._offsets = np.concatenate([self._offsets, np.asarray(batch.column("offset"))])
        self._due = np.concatenate([self._due, due])
        return True


# --- checkpoint -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class State:
    """The last round of a replay, as stored in its checkpoint."""

    replay: str
    """Its name, for transactions and their ledger."""
    number: int
    """Of the round; the first is 0."""
    start: Offsets
    end: Offsets
    until: Offsets
    """The end of the whole replay: records archived later are left to another one."""
    done: bool
    """Whether the round is known to be written; if not, the ledger is read, or it is repeated."""
    settings: Mapping[str, Any]
    """The settings that must not change when the replay resumes."""

    def encode(self) -> bytes:
        fields = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        fields |= {name: to_json(getattr(self, name)) for name in ("start", "end", "until")}
        return json.dumps(fields, indent=1).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes, place: str) -> State:
        """Raises: ConfigurationError: the checkpoint has another format."""
        try:
            fields = json.loads(data)
            fields |= {name: from_json(fields[name])[0] for name in ("start", "end", "until")}
            return cls(**fields)
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{place} is not a checkpoint of a replay: {error!r}") from None

    def check(self, settings: Mapping[str, Any], place: str) -> None:
        """Raises: ConfigurationError: the replay was started with other settings."""
        for name, value in settings.items():
            if self.settings.get(name) != value:
                raise ConfigurationError(
                    f"the replay whose checkpoint is {place} was started with {name} {self.settings.get(name)!r}, not "
                    f"{value!r}: keep its setting, or choose another checkpoint"
                )


@dataclasses.dataclass(frozen=True)
class Resumed:
    """The point at which a replay resumes."""

    number: int
    start: Offsets
    repeat: Offsets | None
    """The end of the first round if it may already be written."""


def resume(state: State, committed: int | None, *, exactly_once: bool) -> Resumed:
    """Return where to resume after a checkpoint's last round, given the ledger's last round.

    Raises: ConfigurationError: it is unknown whether the round was written.
    """
    if state.done or (exactly_once and committed is not None and committed >= state.number):
        return Resumed(state.number + 1, state.end, None)
    if exactly_once and committed is None and state.number > 0:
        raise ConfigurationError(
            f"it is unknown whether round {state.number} of the replay was written: the ledger, group "
            f"'{state.replay}.batches', has expired; check the topic, and replay the rest by its offsets"
        )
    return Resumed(state.number, state.start, state.end)
