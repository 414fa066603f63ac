"""LeaveGroup (key 13), versions 0-5, flexible from 4.

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


class MemberResponse(Struct):
    """Stands in `LeaveGroupResponse.members`."""

    __slots__ = ("member_id", "group_instance_id", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.member_id)
        out.nullable_string(self.group_instance_id)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.member_id = src.string()
        self.group_instance_id = src.nullable_string()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class LeaveGroupResponse(Response):
    """Answers `LeaveGroupRequest`."""

    API: ClassVar[ApiKey] = ApiKey.LEAVE_GROUP
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=4)
    __slots__ = ("throttle_time_ms", "error_code", "members", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v1+
        error_code: int = 0,
        members: list[MemberResponse] = EMPTY,  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.members: list[MemberResponse] = [] if members is EMPTY else members
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        if version >= 3:
            out.array_length(len(self.members))
            for member_response in self.members:
                member_response.encode(out, version)
        elif self.members:
            raise self.unsupported("members", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.error_code = src.int16()
        self.members = src.structs(MemberResponse, version) if version >= 3 else []
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.members:
            yield entry.error_code


class MemberIdentity(Struct):
    """Stands in `LeaveGroupRequest.members`."""

    __slots__ = ("member_id", "group_instance_id", "reason", "unknown_tags")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,  # v5+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.reason: str | None = reason
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.member_id)
        out.nullable_string(self.group_instance_id)
        if version >= 5:
            out.nullable_string(self.reason)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.member_id = src.string()
        self.group_instance_id = src.nullable_string()
        self.reason = src.nullable_string() if version >= 5 else None
        self.unknown_tags = src.tags()
        return self


class LeaveGroupRequest(Request[LeaveGroupResponse]):
    """Answered by `LeaveGroupResponse`."""

    API: ClassVar[ApiKey] = ApiKey.LEAVE_GROUP
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=4)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[LeaveGroupResponse]] = LeaveGroupResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"members": 3, "group_instance_id": 3, "reason": 5}
    __slots__ = ("group_id", "member_id", "members", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",  # v0-2
        members: list[MemberIdentity] = EMPTY,  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.members: list[MemberIdentity] = [] if members is EMPTY else members
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        if version <= 2:
            out.string(self.member_id)
        elif self.member_id:
            raise self.unsupported("member_id", version)
        if version >= 3:
            out.array_length(len(self.members))
            for member_identity in self.members:
                member_identity.encode(out, version)
        elif self.members:
            raise self.unsupported("members", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.member_id = src.string() if version <= 2 else ""
        self.members = src.structs(MemberIdentity, version) if version >= 3 else []
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.group_id
