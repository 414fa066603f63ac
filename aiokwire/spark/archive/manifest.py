"""An archive's manifests: its files, and the offsets that they cover.

```
_manifests/00000000000000000007.json   one for each committed round, and for each compaction
_manifests/.pending.json               a round whose complete files are being renamed
```

The manifests together define the archive (`fold`): a file that none of them names does not belong
to it. Used by `archive`, which writes them, by `replay` and `audit`, and by other readers of a
growing archive. No I/O except in `read_archive` and `load`.
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
    """An archive's manifests or files are missing or were changed."""


@dataclasses.dataclass(frozen=True, order=True)
class DataFile:
    """A Parquet file: records of one partition and one day (or hour), in offset order."""

    topic: str
    partition: int
    first: int
    """The offset of the first record."""
    last: int
    """The offset of the last record; not every offset in between has a record in this file."""
    path: str
    """Relative to the archive's root."""
    records: int
    bytes: int
    min_timestamp: int
    """Milliseconds since the epoch; -1 for records without timestamps (before Kafka 0.10)."""
    max_timestamp: int
    crc32c: int
    """Of all its bytes."""

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclasses.dataclass(frozen=True)
class Manifest:
    """One round or one compaction."""

    number: int
    ranges: tuple[Range, ...]
    """The offsets read; control, aborted and compacted records leave fewer records."""
    files: tuple[DataFile, ...]
    replaces: bool = False
    """A compaction's manifest is complete, and replaces all earlier ones."""
    topic_ids: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """In hexadecimal digits, of topics that have one."""
    layout: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The properties that all files share: columns, directories, isolation level."""
    written: int = 0
    """By the driver's clock, in milliseconds since the epoch."""
    moves: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """While pending: the temporary names of the files, and their final ones."""
    removes: tuple[str, ...] = ()
    """While pending: the files that a compaction replaces."""


@dataclasses.dataclass(frozen=True)
class Archive:
    """The state that the manifests define together."""

    number: int = 0
    """Of the last manifest; 0 before the first."""
    begins: int = 0
    """Of the first manifest in effect: a compaction's, or 1."""
    files: tuple[DataFile, ...] = ()
    """In the order of topic, partition and offset."""
    ranges: tuple[Range, ...] = ()
    """The offsets read, in the same order; adjacent ranges are joined."""
    topic_ids: Mapping[str, str] = dataclasses.field(default_factory=dict)
    layout: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def ends(self) -> Offsets:
        """The offset at which each partition resumes."""
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
    """Return the path of a manifest, relative to the archive's root."""
    return f"{FOLDER}/{number:020}.json"


# --- as JSON --------------------------------------------------------------------------------------------------------


def encode(manifest: Manifest) -> bytes:
    """Encode a manifest as an indented JSON document."""
    fields = dataclasses.asdict(manifest) | {"ranges": [each._asdict() for each in manifest.ranges]}
    fields = {name: value for name, value in fields.items() if value or name not in ("moves", "removes", "replaces")}
    return json.dumps({"format": FORMAT, "version": VERSION, **fields}, indent=1, sort_keys=False).encode() + b"\n"


def decode(data: bytes, name: str) -> Manifest:
    """Decode a manifest; `name` is for the message.

    Raises: ArchiveDamaged: it has another format, or a later version.
    """
    try:
        fields = json.loads(data)
        if fields.pop("format") != FORMAT or (version := fields.pop("version")) > VERSION:
            raise ArchiveDamaged(f"{name} is not a manifest that this version of aiokwire can read")
        assert version == VERSION
        fields["ranges"] = tuple(Range(**each) for each in fields["ranges"])
        fields["files"] = tuple(DataFile(**each) for each in fields["files"])
        fields["removes"] = tuple(fields.get("removes", ()))
        return Manifest(**fields)
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise ArchiveDamaged(f"{name} is not a manifest: {error!r}") from None


# --- the archive ----------------------------------------------------------------------------------------------------


def fold(manifests: Iterable[Manifest]) -> Archive:
    """Combine manifests into the archive that they define.

    Raises: ArchiveDamaged: a manifest is missing, or two of them have the same offsets.
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
    """Return the gaps in an archive's offsets: lost before they were read, or never requested."""
    found = []
    for before, after in zip(archive.ranges, archive.ranges[1:], strict=False):
        if before.tp == after.tp:
            found.append(Range(*before.tp, before.end, after.start))
    return found


def covers(archive: Archive, tp: TopicPartition, offset: int) -> bool:
    """Whether the archive has read an offset, with or without a record."""
    place = bisect.bisect_right(
        archive.ranges, (*tp, offset), key=lambda each: (each.topic, each.partition, each.start)
    )
    return place > 0 and archive.ranges[place - 1].tp == tp and offset < archive.ranges[place - 1].end


# --- reading --------------------------------------------------------------------------------------------------------


def read_archive(place: str | Store) -> Archive:
    """Read the archive at a path, in the state of its last manifest.

    Raises: ConfigurationError: the archive does not exist; ArchiveDamaged: see `fold`.
    """
    store = Store.at(place) if isinstance(place, str) else place
    found = load(store)
    if not found.number:
        raise ConfigurationError(f"{store.root} is not an archive: it has no manifest in {FOLDER}")
    return found


def load(store: Store) -> Archive:
    """Read the archive of a store; an empty one if the store has none.

    Raises: ArchiveDamaged: see `fold`.
    """
    while True:
        names = [name for name in store.files(FOLDER) if is_manifest(name)]
        found = [store.read(name) for name in names]
        if None not in found:  # else a compaction has just replaced some of them
            return fold(decode(data, name) for name, data in zip(names, found, strict=True) if data is not None)


def is_manifest(path: str) -> bool:
    """Whether a path, relative to the root, is that of a committed manifest."""
    folder, _, name = path.rpartition("/")
    return folder == FOLDER and name.endswith(".json") and name.removesuffix(".json").isdecimal()
