"""A committed offset as a record of `__consumer_offsets`, in Kafka's format.

`DumpLogSegments --offsets-decoder` reads it, and this broker reads Kafka's records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

from aiokwire.errors import CorruptRecord, ProtocolViolation
from aiokwire.protocol import Data, PlainReader, PlainWriter, VersionRange, decode_embedded, encode_embedded
from aiokwire.records import Record
from aiokwire.types import TopicPartition

_KEY_TYPE = 1
_KEY_TYPES = (0, 1)  # with the same meaning
WRITTEN_VERSION = 3
KEY_STARTS = tuple(kind.to_bytes(2, "big") for kind in _KEY_TYPES)
_NO_EPOCH = -1
_PLAIN = struct.Struct(">hqihq")  # version 3: offset, leader epoch, no metadata, when it was committed


class CommittedOffset(NamedTuple):
    """The offset that a group has committed for a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int  # wall clock
    position: int = -1  # offset of its record: the later of two commits counts


class OffsetKey(NamedTuple):
    """The key of a record."""

    group_id: str
    tp: TopicPartition


class OffsetLogValue(Data):
    """The value of a record."""

    VERSIONS = VersionRange(0, 4, flexible=4)
    __slots__ = ("committed",)

    def __init__(self, committed: CommittedOffset) -> None:
        self.committed: CommittedOffset = committed

    def encode(self, out: PlainWriter, version: int) -> None:
        one = self.committed
        out.int64(one.offset)
        if version >= 3:
            out.int32(one.leader_epoch)
        out.string(one.metadata)
        out.int64(one.committed_ms)
        if version == 1:
            out.int64(-1)
        out.tags(())

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        offset = src.int64()
        leader_epoch = src.int32() if version >= 3 else _NO_EPOCH
        metadata, committed_ms = src.string(), src.int64()
        if version == 1:
            src.int64()  # when it expires: replaced by the broker's retention
        src.tags()  # the topic's id: the key has its name
        return cls(CommittedOffset(offset, leader_epoch, metadata, committed_ms))


def encode_key(group_id: str, tp: TopicPartition) -> bytes:
    """Return the key of a group's offset for a partition."""
    group, topic = group_id.encode(), tp.topic.encode()
    return (
        struct.pack(">hh", _KEY_TYPE, len(group))
        + group
        + struct.pack(">h", len(topic))
        + topic
        + struct.pack(">i", tp.partition)
    )


def decode_key(key: bytes | None) -> OffsetKey | None:
    """Return the key of a record, None for a record of another kind.

    Raises: CorruptRecord.
    """
    try:
        src = PlainReader(key or b"")
        if src.int16() not in _KEY_TYPES:
            return None
        return OffsetKey(src.string(), TopicPartition(src.string(), src.int32()))
    except ProtocolViolation as error:
        raise CorruptRecord(f"the key of a committed offset's record is corrupt: {error}") from error


def encode_value(committed: CommittedOffset) -> bytes:
    """Return the value of a record."""
    return encode_embedded(OffsetLogValue(committed), WRITTEN_VERSION)


def decode_value(key: OffsetKey, value: bytes, position: int = -1) -> CommittedOffset:
    """Return the offset in the record at `position`.

    Raises: CorruptRecord.
    """
    try:
        return decode_embedded(value, OffsetLogValue).committed._replace(position=position)
    except ProtocolViolation as error:
        raise CorruptRecord(f"the offset of group {key.group_id!r} for {key.tp} is corrupt: {error}") from error


def decode_latest(records: Iterable[Record]) -> Iterator[tuple[str, TopicPartition, CommittedOffset]]:
    """Yield group, partition and offset of records with values; fast, for hundreds of thousands.

    Raises: CorruptRecord.
    """
    names: dict[bytes, tuple[str, str]] = {}  # group and topic of keys without their partition
    make = tuple.__new__  # three times as fast as the named tuples' constructors
    unpack, plain_size = _PLAIN.unpack, _PLAIN.size
    for record in records:
        key, value = record.key or b"", record.value or b""
        found = names.get(key[:-4])
        if found is None:
            decoded = decode_key(key)
            if decoded is None:
                continue
            found = names[key[:-4]] = decoded.group_id, decoded.tp.topic
        tp = make(TopicPartition, (found[1], int.from_bytes(key[-4:], "big", signed=True)))
        if len(value) == plain_size:
            version, offset, leader_epoch, size, committed_ms = unpack(value)
            if version == WRITTEN_VERSION and size == 0:  # what this broker writes, without metadata
                yield (found[0], tp, make(CommittedOffset, (offset, leader_epoch, "", committed_ms, record.offset)))
                continue
        yield found[0], tp, decode_value(OffsetKey(found[0], tp), value, record.offset)
