"""JoinGroup (key 11), versions 0-9, flexible from 6.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class JoinGroupResponseMember(Struct):
    """Stands in `JoinGroupResponse.members`."""

    __slots__ = ("member_id", "group_instance_id", "metadata", "unknown_tags")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,  # v5+
        metadata: bytes = b"",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.metadata: bytes = metadata
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.member_id)
        if version >= 5:
            out.nullable_string(self.group_instance_id)
        out.bytes_(self.metadata)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.member_id = src.string()
        self.group_instance_id = src.nullable_string() if version >= 5 else None
        self.metadata = src.bytes_()
        self.unknown_tags = src.tags()
        return self


class JoinGroupResponse(Response):
    """Answers `JoinGroupRequest`."""

    API: ClassVar[ApiKey] = ApiKey.JOIN_GROUP
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 9, flexible=6)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v2+
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,  # v7+
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,  # v9+
        member_id: str = "",
        members: list[JoinGroupResponseMember] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.generation_id: int = generation_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.leader: str = leader
        self.skip_assignment: bool = skip_assignment
        self.member_id: str = member_id
        self.members: list[JoinGroupResponseMember] = [] if members is EMPTY else members
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 2:
            out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.int32(self.generation_id)
        if version >= 7:
            out.nullable_string(self.protocol_type)
        if self.protocol_name is None and version < 7:
            raise self.unsupported("protocol_name", version)
        out.nullable_string(self.protocol_name)
        out.string(self.leader)
        if version >= 9:
            out.boolean(self.skip_assignment)
        elif self.skip_assignment:
            raise self.unsupported("skip_assignment", version)
        out.string(self.member_id)
        out.array_length(len(self.members))
        for join_group_response_member in self.members:
            join_group_response_member.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 2 else 0
        self.error_code = src.int16()
        self.generation_id = src.int32()
        self.protocol_type = src.nullable_string() if version >= 7 else None
        self.protocol_name = src.nullable_string() if version >= 7 else src.string()
        self.leader = src.string()
        self.skip_assignment = src.boolean() if version >= 9 else False
        self.member_id = src.string()
        self.members = src.structs(JoinGroupResponseMember, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class JoinGroupRequestProtocol(Struct):
    """Stands in `JoinGroupRequest.protocols`."""

    __slots__ = ("name", "metadata", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.metadata: bytes = metadata
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.bytes_(self.metadata)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.metadata = src.bytes_()
        self.unknown_tags = src.tags()
        return self


class JoinGroupRequest(Request[JoinGroupResponse]):
    """Answered by `JoinGroupResponse`."""

    API: ClassVar[ApiKey] = ApiKey.JOIN_GROUP
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 9, flexible=6)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[JoinGroupResponse]] = JoinGroupResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"rebalance_timeout_ms": 1, "group_instance_id": 5, "reason": 8}
    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,  # v1+
        member_id: str = "",
        group_instance_id: str | None = None,  # v5+
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = EMPTY,
        reason: str | None = None,  # v8+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str = protocol_type
        self.protocols: list[JoinGroupRequestProtocol] = [] if protocols is EMPTY else protocols
        self.reason: str | None = reason
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.int32(self.session_timeout_ms)
        if version >= 1:
            out.int32(self.rebalance_timeout_ms)
        out.string(self.member_id)
        if version >= 5:
            out.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise self.unsupported("group_instance_id", version)
        out.string(self.protocol_type)
        out.array_length(len(self.protocols))
        for join_group_request_protocol in self.protocols:
            join_group_request_protocol.encode(out, version)
        if version >= 8:
            out.nullable_string(self.reason)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.session_timeout_ms = src.int32()
        self.rebalance_timeout_ms = src.int32() if version >= 1 else -1
        self.member_id = src.string()
        self.group_instance_id = src.nullable_string() if version >= 5 else None
        self.protocol_type = src.string()
        self.protocols = src.structs(JoinGroupRequestProtocol, version)
        self.reason = src.nullable_string() if version >= 8 else None
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.rebalance_timeout_ms, 0)

    def coordinator_key(self) -> str:
        return self.group_id
