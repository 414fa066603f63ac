"""SyncGroup (key 14), versions 0-5, flexible from 4.

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


class SyncGroupResponse(Response):
    """Answers `SyncGroupRequest`."""

    API: ClassVar[ApiKey] = ApiKey.SYNC_GROUP
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=4)
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v1+
        error_code: int = 0,
        protocol_type: str | None = None,  # v5+
        protocol_name: str | None = None,  # v5+
        assignment: bytes = b"",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignment: bytes = assignment
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        if version >= 5:
            out.nullable_string(self.protocol_type)
            out.nullable_string(self.protocol_name)
        out.bytes_(self.assignment)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.error_code = src.int16()
        if version >= 5:
            self.protocol_type = src.nullable_string()
            self.protocol_name = src.nullable_string()
        else:
            self.protocol_type = None
            self.protocol_name = None
        self.assignment = src.bytes_()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class SyncGroupRequestAssignment(Struct):
    """Stands in `SyncGroupRequest.assignments`."""

    __slots__ = ("member_id", "assignment", "unknown_tags")

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b"",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.member_id: str = member_id
        self.assignment: bytes = assignment
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.member_id)
        out.bytes_(self.assignment)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.member_id = src.string()
        self.assignment = src.bytes_()
        self.unknown_tags = src.tags()
        return self


class SyncGroupRequest(Request[SyncGroupResponse]):
    """Answered by `SyncGroupResponse`."""

    API: ClassVar[ApiKey] = ApiKey.SYNC_GROUP
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=4)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[SyncGroupResponse]] = SyncGroupResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"group_instance_id": 3, "protocol_type": 5, "protocol_name": 5}
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,  # v3+
        protocol_type: str | None = None,  # v5+
        protocol_name: str | None = None,  # v5+
        assignments: list[SyncGroupRequestAssignment] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.protocol_type: str | None = protocol_type
        self.protocol_name: str | None = protocol_name
        self.assignments: list[SyncGroupRequestAssignment] = [] if assignments is EMPTY else assignments
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.int32(self.generation_id)
        out.string(self.member_id)
        if version >= 3:
            out.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise self.unsupported("group_instance_id", version)
        if version >= 5:
            out.nullable_string(self.protocol_type)
            out.nullable_string(self.protocol_name)
        out.array_length(len(self.assignments))
        for sync_group_request_assignment in self.assignments:
            sync_group_request_assignment.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.generation_id = src.int32()
        self.member_id = src.string()
        self.group_instance_id = src.nullable_string() if version >= 3 else None
        if version >= 5:
            self.protocol_type = src.nullable_string()
            self.protocol_name = src.nullable_string()
        else:
            self.protocol_type = None
            self.protocol_name = None
        self.assignments = src.structs(SyncGroupRequestAssignment, version)
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.group_id
