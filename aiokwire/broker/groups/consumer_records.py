"""A group of the consumer protocol as records of `__consumer_offsets`, in Kafka's format.

One record holds the group's epoch, one the target's. Each member has three: description, target,
and current assignment. Each pattern has one: its topics. A record without a value deletes its key.
"""

from __future__ import annotations

import dataclasses
import enum
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from aiokwire.broker.groups.classic_records import KEY_TYPE as CLASSIC_KEY
from aiokwire.broker.groups.consumer_group import ConsumerGroup, ConsumerMember, Part, Parts, by_topic
from aiokwire.broker.groups.requests import Client
from aiokwire.broker.groups.states import ReconciliationState
from aiokwire.errors import CorruptRecord, ProtocolViolation
from aiokwire.protocol import CompactReader, CompactWriter, PlainReader

_VERSION = 0  # of every value
_HASH, _EPOCHS = 0, 0  # tags
_LONG = struct.Struct(">q")
Row = tuple[bytes, bytes | None]


class KeyType(enum.IntEnum):
    """The kinds of records, by their number in the key."""

    GROUP = 3
    PARTITIONS = 4  # written by Kafka before 4.1; the record of the group's epoch has had their hash since
    MEMBER = 5
    TARGET = 6
    TARGET_MEMBER = 7
    CURRENT = 8
    REGEX = 16


_NAMED = frozenset({KeyType.MEMBER, KeyType.TARGET_MEMBER, KeyType.CURRENT, KeyType.REGEX})


class ConsumerKey(NamedTuple):
    """A record's key; `name` is a member id or a pattern, empty in a record of the whole group."""

    type: KeyType
    group_id: str
    name: str = ""


# --- keys -------------------------------------------------------------------------------------------------------------


def decode_key(key: bytes | None) -> str | ConsumerKey | None:
    """Return a classic group's id, the key of a consumer group's record, or None for other records.

    Raises: CorruptRecord.
    """
    try:
        src = PlainReader(key or b"")
        kind = src.int16()
        if kind == CLASSIC_KEY:
            return src.string()
        if kind not in set(KeyType):
            return None
        return ConsumerKey(KeyType(kind), src.string(), src.string() if kind in _NAMED else "")
    except ProtocolViolation as error:
        raise CorruptRecord(f"the key of a group's record is corrupt: {error}") from error


def _key(kind: KeyType, group_id: str, name: str = "") -> bytes:
    names = (group_id.encode(), name.encode()) if name else (group_id.encode(),)
    return struct.pack(">h", kind) + b"".join(struct.pack(">h", len(one)) + one for one in names)


# --- writing ----------------------------------------------------------------------------------------------------------


def _new_value() -> CompactWriter:
    out = CompactWriter()
    out.int16(_VERSION)
    return out


def epoch_row(group_id: str, epoch: int, metadata_hash: int) -> Row:
    """Return the record of the group's epoch."""
    out = _new_value()
    out.int32(epoch)
    out.tags(((_HASH, _LONG.pack(metadata_hash)),) if metadata_hash else ())
    return _key(KeyType.GROUP, group_id), out.getvalue()


def target_epoch_row(group_id: str, epoch: int) -> Row:
    """Return the record of the target's epoch."""
    out = _new_value()
    out.int32(epoch)
    out.tags(())
    return _key(KeyType.TARGET, group_id), out.getvalue()


def member_row(group_id: str, member: ConsumerMember) -> Row:
    """Return the record of a member's description."""
    out = _new_value()
    out.nullable_string(member.instance_id)
    out.nullable_string(member.rack_id)
    out.string(member.client.client_id)
    out.string(member.client.host)
    out.strings(list(member.topics))
    out.nullable_string(member.regex)
    out.int32(member.rebalance_timeout_ms)
    out.nullable_string(member.assignor)
    out.tags(())
    return _key(KeyType.MEMBER, group_id, member.member_id), out.getvalue()


def target_row(group_id: str, member_id: str, parts: Parts) -> Row:
    """Return the record of a member's target."""
    out = _new_value()
    _write_parts(dict.fromkeys(parts, 0), out, with_epochs=False)
    out.tags(())
    return _key(KeyType.TARGET_MEMBER, group_id, member_id), out.getvalue()


def current_row(group_id: str, member: ConsumerMember) -> Row:
    """Return the record of a member's current assignment."""
    out = _new_value()
    out.int32(member.epoch)
    out.int32(member.previous_epoch)
    out.int8(member.state)
    _write_parts(member.assigned, out, with_epochs=True)
    _write_parts(member.revoking, out, with_epochs=True)
    out.tags(())
    return _key(KeyType.CURRENT, group_id, member.member_id), out.getvalue()


def regex_row(group_id: str, pattern: str, topics: tuple[str, ...] | None, version: int, now_ms: int) -> Row:
    """Return the record of a pattern's topics; None: no member uses the pattern."""
    key = _key(KeyType.REGEX, group_id, pattern)
    if topics is None:
        return key, None
    out = _new_value()
    out.strings(list(topics))
    out.int64(version)
    out.int64(now_ms)
    out.tags(())
    return key, out.getvalue()


def ends_of_member(group_id: str, member_id: str) -> list[Row]:
    """Return a member's tombstones in Kafka's order: the description, which others need, last."""
    kinds = (KeyType.CURRENT, KeyType.TARGET_MEMBER, KeyType.MEMBER)
    return [(_key(kind, group_id, member_id), None) for kind in kinds]


def ends_of_group(group: ConsumerGroup) -> list[Row]:
    """Return the records that delete a group."""
    rows = [row for member_id in group.members for row in ends_of_member(group.group_id, member_id)]
    rows += [(_key(KeyType.REGEX, group.group_id, pattern), None) for pattern in group.regexes]
    return rows + [(_key(kind, group.group_id), None) for kind in (KeyType.TARGET, KeyType.GROUP)]


def _write_parts(parts: Mapping[Part, int], out: CompactWriter, *, with_epochs: bool) -> None:
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


# --- reading ----------------------------------------------------------------------------------------------------------


def take_in(group: ConsumerGroup, key: ConsumerKey, value: bytes | None, now_ms: int) -> None:
    """Apply a record to a group.

    Raises: CorruptRecord.
    """
    if key.type is KeyType.PARTITIONS:
        return
    try:
        src = version = None
        if value is not None:
            version = PlainReader(value).int16()
            if version < _VERSION:
                raise ProtocolViolation(f"version {version} is unknown")
            src = CompactReader(value, 2)
        _TAKERS[key.type](group, key.name, src, now_ms)
        if src is not None and version == _VERSION:  # newer versions only add to the end
            src.end()
    except (ProtocolViolation, struct.error) as error:
        raise CorruptRecord(
            f"group {group.group_id!r}: a record of type {key.type.name} is corrupt: {error}"
        ) from error


def _take_group(group: ConsumerGroup, name: str, src: PlainReader | None, now_ms: int) -> None:
    if src is None:
        group.set_epoch(0, 0)
        return
    epoch, tags = src.int32(), dict(src.tags())
    group.set_epoch(epoch, _LONG.unpack(tags[_HASH])[0] if _HASH in tags else 0)


def _take_target(group: ConsumerGroup, name: str, src: PlainReader | None, now_ms: int) -> None:
    group.set_target_epoch(0 if src is None else src.int32())
    if src is not None:
        src.tags()


def _take_member(group: ConsumerGroup, name: str, src: PlainReader | None, now_ms: int) -> None:
    if src is None:
        group.remove(name, now_ms)
        return
    known = group.members.get(name)
    instance_id, rack_id = src.nullable_string(), src.nullable_string()
    client = Client(src.string(), src.string())
    topics, regex = tuple(src.strings()), src.nullable_string()
    rebalance_timeout_ms, assignor = src.int32(), src.nullable_string()
    src.tags()  # further fields of a member that uses the classic protocol: this broker has no such members
    group.put(
        ConsumerMember(
            name,
            client,
            instance_id,
            rack_id,
            rebalance_timeout_ms=rebalance_timeout_ms,
            topics=topics,
            regex=regex,
            assignor=assignor,
            **_current_of(known),
        )
    )


def _current_of(member: ConsumerMember | None) -> dict[str, Any]:
    """Return the fields of a `KeyType.CURRENT` record."""
    names = ("epoch", "previous_epoch", "state", "assigned", "revoking")
    return {} if member is None else {name: getattr(member, name) for name in names}


def _take_current(group: ConsumerGroup, name: str, src: PlainReader | None, now_ms: int) -> None:
    known = group.members.get(name)
    if known is None:
        return  # the deletion of a member that has been deleted
    if src is None:
        group.put(dataclasses.replace(known, **_current_of(ConsumerMember(name, known.client))))
        return
    epoch, previous_epoch, state = src.int32(), src.int32(), src.int8()
    assigned, revoking = _read_parts(src, epoch), _read_parts(src, epoch)
    src.tags()
    if state not in set(ReconciliationState):
        raise ProtocolViolation(f"unknown member state {state}")
    group.put(
        dataclasses.replace(
            known,
            epoch=epoch,
            previous_epoch=previous_epoch,
            state=ReconciliationState(state),
            assigned=assigned,
            revoking=revoking,
        )
    )


def _take_target_member(group: ConsumerGroup, name: str, src: PlainReader | None, now_ms: int) -> None:
    if src is None:
        group.target.pop(name, None)
    else:
        group.target[name] = frozenset(_read_parts(src, 0))
        src.tags()


def _take_regex(group: ConsumerGroup, name: str, src: PlainReader | None, now_ms: int) -> None:
    if src is None:
        group.regexes.pop(name, None)
    else:
        group.regexes[name] = tuple(src.strings())
        src.int64()  # the version of the topics
        src.int64()  # when they were matched
        src.tags()


def _read_parts(src: PlainReader, epoch: int) -> dict[Part, int]:
    """Read partitions with their epochs; Kafka before 4.3 wrote none: then `epoch` is used."""
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


_TAKERS: dict[KeyType, Callable[[ConsumerGroup, str, PlainReader | None, int], None]] = {
    KeyType.GROUP: _take_group,
    KeyType.MEMBER: _take_member,
    KeyType.TARGET: _take_target,
    KeyType.TARGET_MEMBER: _take_target_member,
    KeyType.CURRENT: _take_current,
    KeyType.REGEX: _take_regex,
}
