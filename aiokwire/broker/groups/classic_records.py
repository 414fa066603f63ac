"""A group of the classic protocol as a record of `__consumer_offsets`, in Kafka's format.

`DumpLogSegments --offsets-decoder` reads it, and this broker reads Kafka's records.
"""

from __future__ import annotations

import struct
from typing import Self

from aiokwire.broker.groups.classic_group import ClassicGroup, ClassicMember
from aiokwire.broker.groups.requests import Client
from aiokwire.broker.groups.states import ClassicState
from aiokwire.errors import CorruptRecord, ProtocolViolation
from aiokwire.protocol import Data, PlainReader, PlainWriter, VersionRange, decode_embedded, encode_embedded

KEY_TYPE = 2
WRITTEN_VERSION = 3


class MemberRow:
    """Stands in `GroupLogValue.members`."""

    @staticmethod
    def encode(member: ClassicMember, protocol: str | None, out: PlainWriter, version: int) -> None:
        out.string(member.member_id)
        if version >= 3:
            out.nullable_string(member.instance_id)
        out.string(member.client.client_id)
        out.string(member.client.host)
        if version >= 1:
            out.int32(member.rebalance_timeout_ms)
        out.int32(member.session_timeout_ms)
        out.bytes_(member.metadata(protocol))
        out.bytes_(member.assignment)
        out.tags(())

    @staticmethod
    def decode(protocol: str | None, src: PlainReader, version: int) -> ClassicMember:
        member_id = src.string()
        instance_id = src.nullable_string() if version >= 3 else None
        client = Client(src.string(), src.string())
        rebalance_timeout_ms = src.int32() if version >= 1 else -1
        session_timeout_ms = src.int32()
        subscription, assignment = src.bytes_(), src.bytes_()
        src.tags()
        return ClassicMember(
            member_id,
            instance_id,
            client,
            ((protocol or "", subscription),),
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms if rebalance_timeout_ms >= 0 else session_timeout_ms,
            assignment=assignment,
        )


class GroupLogValue(Data):
    """The value of a record."""

    VERSIONS = VersionRange(0, 4, flexible=4)
    __slots__ = ("group",)

    def __init__(self, group: ClassicGroup) -> None:
        self.group: ClassicGroup = group

    def encode(self, out: PlainWriter, version: int) -> None:
        group = self.group
        out.string(group.protocol_type)
        out.int32(group.generation)
        out.nullable_string(group.protocol)
        out.nullable_string(group.leader)
        if version >= 2:
            out.int64(group.changed_ms)
        out.array_length(len(group.members))
        for member in group.members.values():
            MemberRow.encode(member, group.protocol, out, version)
        out.tags(())

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        group = ClassicGroup("")
        protocol_type = src.string()
        generation = src.int32()
        protocol, leader = src.nullable_string(), src.nullable_string()
        changed_ms = src.int64() if version >= 2 else -1
        for _ in range(src.array_length()):
            group.add(MemberRow.decode(protocol, src, version), protocol_type)
        src.tags()
        group.set_logged(generation, protocol_type, protocol, leader, changed_ms)
        if group.members:
            group.restore(ClassicState.STABLE)
        return cls(group)


def group_key(group_id: str) -> bytes:
    """Return the key of a group's record."""
    name = group_id.encode()
    return struct.pack(">hh", KEY_TYPE, len(name)) + name


def encode_group(group: ClassicGroup) -> bytes:
    """Return the value of a group's record."""
    return encode_embedded(GroupLogValue(group), WRITTEN_VERSION)


def decode_group(group_id: str, value: bytes) -> ClassicGroup:
    """Return the group in a record.

    Raises: CorruptRecord.
    """
    try:
        group = decode_embedded(value, GroupLogValue).group
    except ProtocolViolation as error:
        raise CorruptRecord(f"the record of group {group_id!r} is corrupt: {error}") from error
    return group.named(group_id)
