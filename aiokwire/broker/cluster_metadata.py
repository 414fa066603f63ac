"""Reads Kafka's metadata in a data directory: newest snapshot, segments of `__cluster_metadata-0`.

A KRaft node keeps topics, their ids and configs only there. `TopicRegistry` reads it when it finds
unknown partitions. The directory is never written: Kafka may use it again (KIP-500, KIP-630).
"""

from __future__ import annotations

from typing import NamedTuple

from aiokwire.broker.log import Storage, unsigned_varint
from aiokwire.errors import CorruptRecord, ProtocolViolation
from aiokwire.protocol import CompactReader
from aiokwire.records import read_batches

METADATA_TOPIC = "__cluster_metadata"
DIRECTORY = f"{METADATA_TOPIC}-0"
_SNAPSHOT = ".checkpoint"
_SEGMENT = ".log"
_FRAME_VERSION = 1  # of a record
_FRAME_SIZE = 12  # base offset and length of a batch

# Record types by their api key.
_TOPIC, _PARTITION, _CONFIG, _PARTITION_CHANGE, _REMOVE_TOPIC, _PRODUCER_IDS = 2, 3, 4, 5, 9, 15
_BEGIN_TRANSACTION, _END_TRANSACTION, _ABORT_TRANSACTION = 23, 24, 25
_NEWEST = {_TOPIC: 0, _PARTITION: 2, _CONFIG: 0, _PARTITION_CHANGE: 2, _REMOVE_TOPIC: 0, _PRODUCER_IDS: 0}
_LEADER_TAG = 1  # of a partition change: there is a new leader, in a new epoch
_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4


class KafkaTopic(NamedTuple):
    """A topic as Kafka knew it."""

    id: bytes
    leader_epochs: dict[int, int]  # by partition
    configs: dict[str, str]  # its own, without the broker's defaults

    @property
    def partitions(self) -> int:
        return max(self.leader_epochs, default=-1) + 1


class ClusterMetadata:
    """The state that results from the records, applied in order."""

    def __init__(self) -> None:
        self.topics: dict[str, KafkaTopic] = {}
        self.broker_configs: dict[str, dict[str, str]] = {}  # by node id, "" for all brokers
        self.next_producer_id: int = 0
        self._names: dict[bytes, str] = {}
        self._open: list[bytes] | None = None  # records of a metadata transaction (KIP-866) that has not ended

    def apply(self, record: bytes) -> None:
        """Apply one record's value.

        Raises: CorruptRecord, ProtocolViolation: it cannot be read.
        """
        kind, version, body = _frame(record)
        if kind == _BEGIN_TRANSACTION:
            self._open = []
        elif kind == _ABORT_TRANSACTION:
            self._open = None
        elif kind == _END_TRANSACTION:
            held, self._open = self._open or [], None
            for one in held:
                self.apply(one)
        elif kind in _NEWEST:
            if version > _NEWEST[kind]:
                raise CorruptRecord(f"metadata record {kind} has version {version}, above the known {_NEWEST[kind]}")
            if self._open is not None:
                self._open.append(record)
            else:
                self._apply(kind, body)

    def finish(self) -> None:
        """Remove the configs of topics that do not exist."""
        self.topics = {name: topic for name, topic in self.topics.items() if topic.id}

    def _apply(self, kind: int, body: CompactReader) -> None:
        if kind == _TOPIC:
            name, topic_id = body.string(), body.uuid()
            self.topics[name] = KafkaTopic(topic_id, {}, self._configs_of(name))
            self._names[topic_id] = name
        elif kind == _PARTITION:
            self._set_partition(body)
        elif kind == _PARTITION_CHANGE:
            self._change_partition(body)
        elif kind == _CONFIG:
            self._set_config(body)
        elif kind == _REMOVE_TOPIC:
            self.topics.pop(self._names.pop(body.uuid(), ""), None)
        else:
            body.int32(), body.int64()  # the broker that the ids are for, and its epoch
            self.next_producer_id = max(self.next_producer_id, body.int64())

    def _configs_of(self, name: str) -> dict[str, str]:
        """Return configs that came before their topic, as they may in a snapshot."""
        known = self.topics.get(name)
        return known.configs if known is not None and known.id == b"" else {}

    def _set_partition(self, body: CompactReader) -> None:
        index, topic_id = body.int32(), body.uuid()
        for _ in range(4):
            body.int32s()  # replicas, in sync, being removed, being added
        body.int32()  # the leader
        epoch = body.int32()
        if (name := self._names.get(topic_id)) is not None:
            self.topics[name].leader_epochs[index] = epoch

    def _change_partition(self, body: CompactReader) -> None:
        index, topic_id = body.int32(), body.uuid()
        name = self._names.get(topic_id)
        if name is None or index not in self.topics[name].leader_epochs:
            return
        if any(tag == _LEADER_TAG for tag, _ in body.tags()):
            self.topics[name].leader_epochs[index] += 1

    def _set_config(self, body: CompactReader) -> None:
        resource, name, config, value = body.int8(), body.string(), body.string(), body.nullable_string()
        if resource == _TOPIC_RESOURCE:
            configs = self.topics.setdefault(name, KafkaTopic(b"", {}, {})).configs
        elif resource == _BROKER_RESOURCE:
            configs = self.broker_configs.setdefault(name, {})
        else:
            return
        if value is None:
            configs.pop(config, None)
        else:
            configs[config] = value


def read_cluster_metadata(storage: Storage) -> ClusterMetadata | None:
    """Return a data directory's metadata; None without a metadata log (no controller role).

    Raises: CorruptRecord: a snapshot or segment is corrupt or missing. StorageError.
    """
    names = storage.list(DIRECTORY)
    snapshots = _by_offset(names, _SNAPSHOT)
    segments = _by_offset(names, _SEGMENT)
    if not snapshots and not segments:
        return None
    metadata, position = ClusterMetadata(), 0
    if snapshots:
        position, name = snapshots[-1]
        _apply_file(metadata, storage, name, from_offset=0, is_complete=True)
    following = [base for base, _ in segments[1:]]
    for (base, name), end in zip(segments, [*following, None], strict=True):
        if end is not None and end <= position:
            continue
        if base > position:
            raise CorruptRecord(f"{DIRECTORY} has no records from offset {position} to {base}")
        reached = _apply_file(metadata, storage, name, from_offset=position, is_complete=end is not None)
        if end is not None and reached < end:
            raise CorruptRecord(f"{DIRECTORY}/{name} ends at offset {reached} instead of {end}")
        position = max(position, reached)
    metadata.finish()
    return metadata


def _by_offset(names: list[str], suffix: str) -> list[tuple[int, str]]:
    # `<offset>-<epoch>.checkpoint` and `<offset>.log`; files being written or deleted have other suffixes
    return sorted((int(name[:20]), name) for name in names if name.endswith(suffix) and name[:20].isdigit())


def _apply_file(metadata: ClusterMetadata, storage: Storage, name: str, *, from_offset: int, is_complete: bool) -> int:
    """Apply a file's records; return the offset after them. Only the last segment may end torn."""
    path = f"{DIRECTORY}/{name}"
    content = storage.read(path) or b""
    size, end = 0, -1
    try:
        for batch in read_batches(content, METADATA_TOPIC, 0):
            size += batch.size
            end = batch.next_offset
            for record in () if batch.is_control else batch.records(from_offset):
                metadata.apply(record.value or b"")
    except ProtocolViolation as error:
        raise CorruptRecord(f"{path} contains an unreadable record: {error}") from error
    if size < len(content) and (is_complete or not _is_torn(content[size:])):
        raise CorruptRecord(f"{path} is corrupt at byte {size}")
    return end


def _is_torn(rest: bytes) -> bool:
    """Return whether these bytes are a batch whose end was never written."""
    return len(rest) < _FRAME_SIZE or int.from_bytes(rest[8:_FRAME_SIZE], "big") + _FRAME_SIZE > len(rest)


def _frame(record: bytes) -> tuple[int, int, CompactReader]:
    """Return type, version and body of a record's value."""
    try:
        frame, at = unsigned_varint(record, 0)
        kind, at = unsigned_varint(record, at)
        version, at = unsigned_varint(record, at)
    except IndexError:
        raise CorruptRecord("a metadata record is truncated") from None
    if frame != _FRAME_VERSION:
        raise CorruptRecord(f"metadata records of frame version {frame} cannot be read")
    return kind, version, CompactReader(record, at)
