"""ShareGroupDescribe (key 77), versions 1, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    ZERO_UUID,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class TopicPartitions(Struct):
    """Stands in `Assignment.topic_partitions`."""

    __slots__ = ("topic_id", "topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.string(self.topic_name)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.topic_name = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class Assignment(Struct):
    """Stands in `Member.assignment`."""

    __slots__ = ("topic_partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is EMPTY else topic_partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.topic_partitions))
        for topic_partitions in self.topic_partitions:
            topic_partitions.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_partitions = src.structs(TopicPartitions, version)
        self.unknown_tags = src.tags()
        return self


class Member(Struct):
    """Stands in `DescribedGroup.members`."""

    __slots__ = (
        "member_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "assignment",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = EMPTY,
        assignment: Assignment | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.member_id: str = member_id
        self.rack_id: str | None = rack_id
        self.member_epoch: int = member_epoch
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.subscribed_topic_names: list[str] = [] if subscribed_topic_names is EMPTY else subscribed_topic_names
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.member_id)
        out.nullable_string(self.rack_id)
        out.int32(self.member_epoch)
        out.string(self.client_id)
        out.string(self.client_host)
        out.strings(self.subscribed_topic_names)
        self.assignment.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.member_id = src.string()
        self.rack_id = src.nullable_string()
        self.member_epoch = src.int32()
        self.client_id = src.string()
        self.client_host = src.string()
        self.subscribed_topic_names = src.strings()
        self.assignment = Assignment.decode(src, version)
        self.unknown_tags = src.tags()
        return self


class DescribedGroup(Struct):
    """Stands in `ShareGroupDescribeResponse.groups`."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.assignor_name: str = assignor_name
        self.members: list[Member] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.string(self.group_id)
        out.string(self.group_state)
        out.int32(self.group_epoch)
        out.int32(self.assignment_epoch)
        out.string(self.assignor_name)
        out.array_length(len(self.members))
        for member in self.members:
            member.encode(out, version)
        out.int32(self.authorized_operations)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.group_id = src.string()
        self.group_state = src.string()
        self.group_epoch = src.int32()
        self.assignment_epoch = src.int32()
        self.assignor_name = src.string()
        self.members = src.structs(Member, version)
        self.authorized_operations = src.int32()
        self.unknown_tags = src.tags()
        return self


class ShareGroupDescribeResponse(Response):
    """Answers `ShareGroupDescribeRequest`."""

    API: ClassVar[ApiKey] = ApiKey.SHARE_GROUP_DESCRIBE
    VERSIONS: ClassVar[VersionRange] = VersionRange(1, 1, flexible=0)
    __slots__ = ("throttle_time_ms", "groups", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is EMPTY else groups
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.groups))
        for described_group in self.groups:
            described_group.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.groups = src.structs(DescribedGroup, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.groups:
            yield entry.error_code


class ShareGroupDescribeRequest(Request[ShareGroupDescribeResponse]):
    """Answered by `ShareGroupDescribeResponse`."""

    API: ClassVar[ApiKey] = ApiKey.SHARE_GROUP_DESCRIBE
    VERSIONS: ClassVar[VersionRange] = VersionRange(1, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ShareGroupDescribeResponse]] = ShareGroupDescribeResponse
    __slots__ = ("group_ids", "include_authorized_operations", "unknown_tags")

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations: bool = include_authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.strings(self.group_ids)
        out.boolean(self.include_authorized_operations)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_ids = src.strings()
        self.include_authorized_operations = src.boolean()
        self.unknown_tags = src.tags()
        return self
