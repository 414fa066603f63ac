"""An archive's manifests: which files are part of it, and which offsets they cover.

```
_manifests/00000000000000000007.json   one for each round that was committed, and for each compaction
_manifests/.pending.json               a round whose files are whole and on their way to their names
```

What all manifests say together is the archive (`fold`): files that none of them names are not part of it. Used by
`archive`, which writes them, by `replay` and `audit`, and by whoever reads an archive while it grows. Without I/O but
for `read_archive` and `load`.
"""

from __future__ import annotations

import bisect
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.spark.jobs.filesystem import Store
from aiokwire.spark.offsets import Offsets
from aiokwire.spark.source.planning import Range
from aiokwire.types import TopicPartition

FORMAT: Final = "aiokwire-archive"
VERSION: Final = 1
FOLDER: Final = "_manifests"
PENDING: Final = f"{FOLDER}/.pending.json"


class ArchiveDamaged(KafkaError):
    """An archive's manifests or files are not what they were when they were written."""


@dataclasses.dataclass(frozen=True, order=True)
class DataFile:
    """A Parquet file: records of one partition and one day (or hour), in the order of their offsets."""

    topic: str
    partition: int
    first: int
    """The offset of the first record."""
    last: int
    """That of the last one; others between the two may be in files of other days, or were never records."""
    path: str
    """Below the archive's root."""
    records: int
    bytes: int
    min_timestamp: int
    """Milliseconds since the epoch; -1 for records of before timestamps."""
    max_timestamp: int
    crc32c: int
    """Of all its bytes."""

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One round, or one compaction."""

    number: int
    ranges: tuple[Range, ...]
    """What was read; records are fewer where there are markers, aborted or compacted records."""
    files: tuple[DataFile, ...]
    replaces: bool = False
    """A compaction's: it says all that there is, and those before it do not count any more."""
    topic_ids: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """In hexadecimal digits, of topics that have one."""
    layout: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What all files of the archive have in common: columns, directories, isolation level."""
    written: int = 0
    """By the driver's clock, in milliseconds since the epoch."""
    moves: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """While it is pending: the names that the files have until then, and their own."""
    removes: tuple[str, ...] = ()
    """While it is pending: the files that a compaction has put together."""


@dataclasses.dataclass(frozen=True)
class Archive:
    """What the manifests say together."""

    number: int = 0
    """Of the last manifest; 0 when there is none."""
    begins: int = 0
    """Of the first one that counts: a compaction's, or 1."""
    files: tuple[DataFile, ...] = ()
    """In the order of topic, partition and offset."""
    ranges: tuple[Range, ...] = ()
    """What was read, in that order too; those that meet are put together."""
    topic_ids: Mapping[str, str] = dataclasses.field(default_factory=dict)
    layout: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def ends(self) -> Offsets:
        """Where each partition goes on."""
        found: Offsets = {}
        for each in self.ranges:
            found[each.tp] = max(each.end, found.get(each.tp, 0))
        return found

    @property
    def records(self) -> int:
        return sum(each.records for each in self.files)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.files)


def name_of(number: int) -> str:
    """Where the manifest of this number is, below the archive's root."""
    return f"{FOLDER}/{number:020}.json"


# --- as JSON --------------------------------------------------------------------------------------------------------


def encode(manifest: Manifest) -> bytes:
    """One JSON document, indented: people look at it."""
    fields = dataclasses.asdict(manifest) | {"ranges": [each._asdict() for each in manifest.ranges]}
    fields = {name: value for name, value in fields.items() if value or name not in ("moves", "removes", "replaces")}
    return json.dumps({"format": FORMAT, "version": VERSION, **fields}, indent=1, sort_keys=False).encode() + b"\n"


def decode(data: bytes, name: str) -> Manifest:
    """What `encode` wrote; `name` is for the message.

    Raises: ArchiveDamaged: it is something else, or of a later version.
    """
    try:
        fields = json.loads(data)
        if fields.pop("format") != FORMAT or (version := fields.pop("version")) > VERSION:
            raise ArchiveDamaged(f"{name} is no manifest that this version of aiokwire knows")
        assert version == VERSION
        fields["ranges"] = tuple(Range(**each) for each in fields["ranges"])
        fields["files"] = tuple(DataFile(**each) for each in fields["files"])
        fields["removes"] = tuple(fields.get("removes", ()))
        return Manifest(**fields)
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise ArchiveDamaged(f"{name} is no manifest: {error!r}") from None


# --- together -------------------------------------------------------------------------------------------------------


def fold(manifests: Iterable[Manifest]) -> Archive:
    """What they say together.

    Raises: ArchiveDamaged: one is missing between others, or two of them have the same offsets.
    """
    chain: list[Manifest] = []
    for each in sorted(manifests, key=lambda manifest: manifest.number):
        if each.replaces:
            chain = []
        chain.append(each)
    if not chain:
        return Archive()
    if not chain[0].replaces and chain[0].number != 1:
        raise ArchiveDamaged(f"{name_of(chain[0].number - 1)} is missing")
    for place, each in enumerate(chain):
        if each.number != chain[0].number + place:
            raise ArchiveDamaged(f"{name_of(each.number - 1)} is missing")
    topic_ids: dict[str, str] = {}
    for each in chain:
        topic_ids |= each.topic_ids
    return Archive(
        number=chain[-1].number,
        begins=chain[0].number,
        files=tuple(sorted(file for each in chain for file in each.files)),
        ranges=tuple(_joined(chain)),
        topic_ids=topic_ids,
        layout=chain[-1].layout,
    )


def _joined(chain: Sequence[Manifest]) -> list[Range]:
    found: list[Range] = []
    for each in sorted(whole for manifest in chain for whole in manifest.ranges):
        if found and found[-1].tp == each.tp:
            if each.start < found[-1].end:
                raise ArchiveDamaged(f"two manifests have offset {each.start} of {each.tp}")
            if each.start == found[-1].end:
                found[-1] = found[-1]._replace(end=each.end)
                continue
        found.append(each)
    return found


def missing(archive: Archive) -> list[Range]:
    """What lies between the offsets of an archive: lost before it was read, or never asked for."""
    found = []
    for before, after in zip(archive.ranges, archive.ranges[1:], strict=False):
        if before.tp == after.tp:
            found.append(Range(*before.tp, before.end, after.start))
    return found


def covers(archive: Archive, tp: TopicPartition, offset: int) -> bool:
    """Whether the archive has read this offset; there may have been no record at it."""
    place = bisect.bisect_right(
        archive.ranges, (*tp, offset), key=lambda each: (each.topic, each.partition, each.start)
    )
    return place > 0 and archive.ranges[place - 1].tp == tp and offset < archive.ranges[place - 1].end


# --- from where they are --------------------------------------------------------------------------------------------


def read_archive(place: str | Store) -> Archive:
    """The archive at this path, as the last manifest left it.

    Raises: ConfigurationError: there is no archive; ArchiveDamaged: see `fold`.
    """
    store = Store.at(place) if isinstance(place, str) else place
    found = load(store)
    if not found.number:
        raise ConfigurationError(f"{store.root} is no archive: it has no manifest in {FOLDER}")
    return found


def load(store: Store) -> Archive:
    """The same; an empty one where there is none.

    Raises: ArchiveDamaged: see `fold`.
    """
    while True:
        names = [name for name in store.files(FOLDER) if is_manifest(name)]
        found = [store.read(name) for name in names]
        if None not in found:  # else a compaction has just taken the place of some of them
            return fold(decode(data, name) for name, data in zip(names, found, strict=True) if data is not None)


def is_manifest(path: str) -> bool:
    """Whether a path below the root is that of a committed manifest."""
    folder, _, name = path.rpartition("/")
    return folder == FOLDER and name.endswith(".json") and name.removesuffix(".json").isdecimal()
