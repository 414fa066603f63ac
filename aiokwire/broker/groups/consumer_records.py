"""A group of the consumer protocol as records of `__consumer_offsets`, in Kafka's format.

One record says the group's epoch, one the target's, and three each member: what it said of itself, its target, and how
far it is. A pattern has one with the topics that it stands for. A record without a value ends what it was about.
"""

from __future__ import annotations

import dataclasses
import enum
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from aiokwire.broker.groups.classic_records import KEY_TYPE as CLASSIC_KEY
from aiokwire.broker.groups.consumer_group import ConsumerGroup, ConsumerMember, Part, Parts, by_topic
from aiokwire.broker.groups.requests import Client
from aiokwire.broker.groups.states import ReconciliationState
from aiokwire.errors import CorruptRecord, ProtocolViolation
from aiokwire.protocol import Data, PlainReader, PlainWriter, VersionRange, decode_embedded, encode_embedded

_HASH, _EPOCHS = 0, 0  # tags
_LONG = struct.Struct(">q")
Row = tuple[bytes, bytes | None]


class KeyType(enum.IntEnum):
    """What a record is about."""

    GROUP = 3
    PARTITIONS = 4  # of Kafka before 4.1: a group's epoch record has their hash since
    MEMBER = 5
    TARGET = 6
    TARGET_MEMBER = 7
    CURRENT = 8
    REGEX = 16


class ConsumerKey(NamedTuple):
    """The key of a record; `name` is a member id or a pattern, empty where the record is the group's."""

    type: KeyType
    group_id: str
    name: str = ""


class _Value(Data):
    """What all values have in common."""

    VERSIONS = VersionRange(0, 0, flexible=0)
    __slots__ = ()


class GroupEpochValue(_Value):
    """The group's epoch."""

    __slots__ = ("epoch", "metadata_hash")

    def __init__(self, epoch: int, metadata_hash: int) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.epoch)
        out.tags(((_HASH, _LONG.pack(self.metadata_hash)),) if self.metadata_hash else ())

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        epoch, tags = src.int32(), dict(src.tags())
        return cls(epoch, _LONG.unpack(tags[_HASH])[0] if _HASH in tags else 0)


class TargetEpochValue(_Value):
    """The epoch that the target is of."""

    __slots__ = ("epoch",)

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.epoch)
        out.tags(())

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls(src.int32())
        src.tags()
        return self


class MemberValue(_Value):
    """What a member said of itself."""

    __slots__ = ("member",)

    def __init__(self, member: ConsumerMember) -> None:
        self.member = member

    def encode(self, out: PlainWriter, version: int) -> None:
        member = self.member
        out.nullable_string(member.instance_id)
        out.nullable_string(member.rack_id)
        out.string(member.client.client_id)
        out.string(member.client.host)
        out.strings(list(member.topics))
        out.nullable_string(member.regex)
        out.int32(member.rebalance_timeout_ms)
        out.nullable_string(member.assignor)
        out.tags(())

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        instance_id, rack_id = src.nullable_string(), src.nullable_string()
        client = Client(src.string(), src.string())
        topics, regex = tuple(src.strings()), src.nullable_string()
        rebalance_timeout_ms, assignor = src.int32(), src.nullable_string()
        src.tags()  # what a member of the classic protocol said: this broker has none in such a group
        return cls(
            ConsumerMember(
                "",
                client,
                instance_id,
                rack_id,
                rebalance_timeout_ms=rebalance_timeout_ms,
                topics=topics,
                regex=regex,
                assignor=assignor,
            )
        )


class TargetMemberValue(_Value):
    """A member's target."""

    __slots__ = ("parts",)

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def encode(self, out: PlainWriter, version: int) -> None:
        _write_parts(dict.fromkeys(self.parts, 0), out, with_epochs=False)
        out.tags(())

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls(frozenset(_read_parts(src, 0)))
        src.tags()
        return self


class CurrentValue(_Value):
    """How far a member is."""

    __slots__ = ("member",)

    def __init__(self, member: ConsumerMember) -> None:
        self.member = member

    def encode(self, out: PlainWriter, version: int) -> None:
        member = self.member
        out.int32(member.epoch)
        out.int32(member.previous_epoch)
        out.int8(member.state)
        _write_parts(member.assigned, out, with_epochs=True)
        _write_parts(member.revoking, out, with_epochs=True)
        out.tags(())

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        epoch, previous_epoch, state = src.int32(), src.int32(), src.int8()
        assigned, revoking = _read_parts(src, epoch), _read_parts(src, epoch)
        src.tags()
        if state not in set(ReconciliationState):
            raise ProtocolViolation(f"no member has state {state}")
        return cls(
            ConsumerMember(
                "",
                Client("", ""),
                epoch=epoch,
                previous_epoch=previous_epoch,
                state=ReconciliationState(state),
                assigned=assigned,
                revoking=revoking,
            )
        )


class RegexValue(_Value):
    """The topics that a pattern stands for."""

    __slots__ = ("now_ms", "topics", "version")

    def __init__(self, topics: tuple[str, ...], version: int, now_ms: int) -> None:
        self.topics = topics
        self.version = version
        self.now_ms = now_ms

    def encode(self, out: PlainWriter, version: int) -> None:
        out.strings(list(self.topics))
        out.int64(self.version)
        out.int64(self.now_ms)
        out.tags(())

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls(tuple(src.strings()), src.int64(), src.int64())
        src.tags()
        return self


def _write_parts(parts: Mapping[Part, int], out: PlainWriter, *, with_epochs: bool) -> None:
    rows = by_topic(parts)
    out.array_length(len(rows))
    for topic_id, indices in rows.items():
        out.uuid(topic_id)
        out.int32s(indices)
        if with_epochs:
            inner = out.nested()
            inner.nullable_int32s([parts[Part(topic_id, index)] for index in indices])
            out.tags((), [(_EPOCHS, inner)])
        else:
            out.tags(())


def _read_parts(src: PlainReader, epoch: int) -> dict[Part, int]:
    """Partitions with their epochs, `epoch` where they have none (Kafka before 4.3)."""
    found: dict[Part, int] = {}
    for _ in range(src.array_length()):
        topic_id, indices = src.uuid(), src.int32s()
        epochs = None
        for tag, inner in src.tagged():
            if tag == _EPOCHS:
                epochs = inner.nullable_int32s()
        if epochs is None or len(epochs) != len(indices):
            epochs = [epoch] * len(indices)
        found.update(zip((Part(topic_id, index) for index in indices), epochs, strict=True))
    return found


# --- rows ----------------------------------------------------------------------------------------------------------


def _key(key: ConsumerKey) -> bytes:
    names = (key.group_id,) if not key.name else (key.group_id, key.name)
    return struct.pack(">h", key.type) + b"".join(struct.pack(">h", len(one.encode())) + one.encode() for one in names)


def decode_key(key: bytes | None) -> str | ConsumerKey | None:
    """Return the id of a classic group, the key of a consumer group's record, or None for other records.

    Raises: CorruptRecord.
    """
    try:
        src = PlainReader(key or b"")
        kind = src.int16()
        return src.string() if kind == CLASSIC_KEY else _decode_key(kind, src)
    except ProtocolViolation as error:
        raise CorruptRecord(f"the key of a group's record is damaged: {error}") from error


def _decode_key(kind: int, src: PlainReader) -> ConsumerKey | None:
    if kind not in set(KeyType):
        return None
    named = kind in {KeyType.MEMBER, KeyType.TARGET_MEMBER, KeyType.CURRENT, KeyType.REGEX}
    return ConsumerKey(KeyType(kind), src.string(), src.string() if named else "")


def epoch_row(group_id: str, epoch: int, metadata_hash: int) -> Row:
    """The group's epoch."""
    return _key(ConsumerKey(KeyType.GROUP, group_id)), encode_embedded(GroupEpochValue(epoch, metadata_hash), 0)


def target_epoch_row(group_id: str, epoch: int) -> Row:
    """The target's epoch."""
    return _key(ConsumerKey(KeyType.TARGET, group_id)), encode_embedded(TargetEpochValue(epoch), 0)


def member_row(group_id: str, member: ConsumerMember) -> Row:
    """What a member said of itself."""
    return _key(ConsumerKey(KeyType.MEMBER, group_id, member.member_id)), encode_embedded(MemberValue(member), 0)


def target_row(group_id: str, member_id: str, parts: Parts) -> Row:
    """A member's target."""
    key = ConsumerKey(KeyType.TARGET_MEMBER, group_id, member_id)
    return _key(key), encode_embedded(TargetMemberValue(parts), 0)


def current_row(group_id: str, member: ConsumerMember) -> Row:
    """How far a member is."""
    return _key(ConsumerKey(KeyType.CURRENT, group_id, member.member_id)), encode_embedded(CurrentValue(member), 0)


def regex_row(group_id: str, pattern: str, topics: tuple[str, ...] | None, version: int, now_ms: int) -> Row:
    """The topics of a pattern; None: nobody uses it any more."""
    value = None if topics is None else encode_embedded(RegexValue(topics, version, now_ms), 0)
    return _key(ConsumerKey(KeyType.REGEX, group_id, pattern)), value


def ends_of_member(group_id: str, member_id: str) -> list[Row]:
    """Nothing is known of a member any more; in Kafka's order, so that no record is without what it rests on."""
    kinds = (KeyType.CURRENT, KeyType.TARGET_MEMBER, KeyType.MEMBER)
    return [(_key(ConsumerKey(kind, group_id, member_id)), None) for kind in kinds]


def ends_of_group(group: ConsumerGroup) -> list[Row]:
    """Nothing is known of a group any more."""
    rows = [row for member_id in group.members for row in ends_of_member(group.group_id, member_id)]
    rows += [(_key(ConsumerKey(KeyType.REGEX, group.group_id, one)), None) for one in group.regexes]
    kinds = (KeyType.TARGET, KeyType.GROUP)
    return rows + [(_key(ConsumerKey(kind, group.group_id)), None) for kind in kinds]


# --- reading -------------------------------------------------------------------------------------------------------


def take_in(group: ConsumerGroup, key: ConsumerKey, value: bytes | None, now_ms: int) -> None:
    """Put what a record says in force.

    Raises: CorruptRecord.
    """
    try:
        _TAKERS[key.type](group, key.name, value, now_ms)
    except (ProtocolViolation, struct.error) as error:
        raise CorruptRecord(
            f"group {group.group_id!r}: a record of type {key.type.name} is damaged: {error}"
        ) from error


def _take_group(group: ConsumerGroup, name: str, value: bytes | None, now_ms: int) -> None:
    read = decode_embedded(value, GroupEpochValue) if value is not None else GroupEpochValue(0, 0)
    group.epoch, group.metadata_hash = read.epoch, read.metadata_hash


def _take_target(group: ConsumerGroup, name: str, value: bytes | None, now_ms: int) -> None:
    group.assignment_epoch = decode_embedded(value, TargetEpochValue).epoch if value is not None else 0


def _take_member(group: ConsumerGroup, name: str, value: bytes | None, now_ms: int) -> None:
    if value is None:
        group.remove(name, now_ms)
        return
    read = decode_embedded(value, MemberValue).member
    known = group.members.get(name)
    placed: dict[str, Any] = {} if known is None else _place_of(known)
    group.put(dataclasses.replace(read, member_id=name, **placed))


def _take_current(group: ConsumerGroup, name: str, value: bytes | None, now_ms: int) -> None:
    known = group.members.get(name)
    if known is None:
        return  # the end of a member that is gone already
    read = decode_embedded(value, CurrentValue).member if value is not None else ConsumerMember(name, known.client)
    group.put(dataclasses.replace(known, **_place_of(read)))


def _take_target_member(group: ConsumerGroup, name: str, value: bytes | None, now_ms: int) -> None:
    if value is None:
        group.target.pop(name, None)
    else:
        group.target[name] = decode_embedded(value, TargetMemberValue).parts


def _take_regex(group: ConsumerGroup, name: str, value: bytes | None, now_ms: int) -> None:
    if value is None:
        group.regexes.pop(name, None)
    else:
        group.regexes[name] = decode_embedded(value, RegexValue).topics


def _ignore(group: ConsumerGroup, name: str, value: bytes | None, now_ms: int) -> None:
    """The epoch's record says it nowadays."""


def _place_of(member: ConsumerMember) -> dict[str, Any]:
    """The fields of `CurrentValue`."""
    return {name: getattr(member, name) for name in ("epoch", "previous_epoch", "state", "assigned", "revoking")}


_TAKERS: dict[KeyType, Callable[[ConsumerGroup, str, bytes | None, int], None]] = {
    KeyType.GROUP: _take_group,
    KeyType.PARTITIONS: _ignore,
    KeyType.MEMBER: _take_member,
    KeyType.TARGET: _take_target,
    KeyType.TARGET_MEMBER: _take_target_member,
    KeyType.CURRENT: _take_current,
    KeyType.REGEX: _take_regex,
}
