"""DescribeGroups (key 15), versions 0-6, flexible from 5.

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


class DescribedGroupMember(Struct):
    """Stands in `DescribedGroup.members`."""

    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "member_metadata",
        "member_assignment",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,  # v4+
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.member_metadata: bytes = member_metadata
        self.member_assignment: bytes = member_assignment
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.member_id)
        if version >= 4:
            out.nullable_string(self.group_instance_id)
        out.string(self.client_id)
        out.string(self.client_host)
        out.bytes_(self.member_metadata)
        out.bytes_(self.member_assignment)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.member_id = src.string()
        self.group_instance_id = src.nullable_string() if version >= 4 else None
        self.client_id = src.string()
        self.client_host = src.string()
        self.member_metadata = src.bytes_()
        self.member_assignment = src.bytes_()
        self.unknown_tags = src.tags()
        return self


class DescribedGroup(Struct):
    """Stands in `DescribeGroupsResponse.groups`."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,  # v6+
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = EMPTY,
        authorized_operations: int = -2147483648,  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.protocol_type: str = protocol_type
        self.protocol_data: str = protocol_data
        self.members: list[DescribedGroupMember] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        if version >= 6:
            out.nullable_string(self.error_message)
        elif self.error_message is not None:
            raise self.unsupported("error_message", version)
        out.string(self.group_id)
        out.string(self.group_state)
        out.string(self.protocol_type)
        out.string(self.protocol_data)
        out.array_length(len(self.members))
        for described_group_member in self.members:
            described_group_member.encode(out, version)
        if version >= 3:
            out.int32(self.authorized_operations)
        elif self.authorized_operations != -2147483648:
            raise self.unsupported("authorized_operations", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string() if version >= 6 else None
        self.group_id = src.string()
        self.group_state = src.string()
        self.protocol_type = src.string()
        self.protocol_data = src.string()
        self.members = src.structs(DescribedGroupMember, version)
        self.authorized_operations = src.int32() if version >= 3 else -2147483648
        self.unknown_tags = src.tags()
        return self


class DescribeGroupsResponse(Response):
    """Answers `DescribeGroupsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_GROUPS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 6, flexible=5)
    __slots__ = ("throttle_time_ms", "groups", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v1+
        groups: list[DescribedGroup] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is EMPTY else groups
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int32(self.throttle_time_ms)
        out.array_length(len(self.groups))
        for described_group in self.groups:
            described_group.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.groups = src.structs(DescribedGroup, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.groups:
            yield entry.error_code


class DescribeGroupsRequest(Request[DescribeGroupsResponse]):
    """Answered by `DescribeGroupsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_GROUPS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 6, flexible=5)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DescribeGroupsResponse]] = DescribeGroupsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"include_authorized_operations": 3}
    __slots__ = ("groups", "include_authorized_operations", "unknown_tags")

    def __init__(
        self,
        *,
        groups: list[str] = EMPTY,
        include_authorized_operations: bool = False,  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.groups: list[str] = [] if groups is EMPTY else groups
        self.include_authorized_operations: bool = include_authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.strings(self.groups)
        if version >= 3:
            out.boolean(self.include_authorized_operations)
        elif self.include_authorized_operations:
            raise self.unsupported("include_authorized_operations", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.groups = src.strings()
        self.include_authorized_operations = src.boolean() if version >= 3 else False
        self.unknown_tags = src.tags()
        return self
