"""DescribeShareGroupOffsets (key 90), versions 0-1, flexible from 0.

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


class DescribeShareGroupOffsetsResponsePartition(Struct):
    """Stands in `DescribeShareGroupOffsetsResponseTopic.partitions`."""

    __slots__ = (
        "partition_index",
        "start_offset",
        "leader_epoch",
        "lag",
        "error_code",
        "error_message",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,  # v1+
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset
        self.leader_epoch: int = leader_epoch
        self.lag: int = lag
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.start_offset)
        out.int32(self.leader_epoch)
        if version >= 1:
            out.int64(self.lag)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.start_offset = src.int64()
        self.leader_epoch = src.int32()
        self.lag = src.int64() if version >= 1 else -1
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class DescribeShareGroupOffsetsResponseTopic(Struct):
    """Stands in `DescribeShareGroupOffsetsResponseGroup.topics`."""

    __slots__ = ("topic_name", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[DescribeShareGroupOffsetsResponsePartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for describe_share_group_offsets_response_partition in self.partitions:
            describe_share_group_offsets_response_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.topic_id = src.uuid()
        self.partitions = src.structs(DescribeShareGroupOffsetsResponsePartition, version)
        self.unknown_tags = src.tags()
        return self


class DescribeShareGroupOffsetsResponseGroup(Struct):
    """Stands in `DescribeShareGroupOffsetsResponse.groups`."""

    __slots__ = ("group_id", "topics", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] = EMPTY,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareGroupOffsetsResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.array_length(len(self.topics))
        for describe_share_group_offsets_response_topic in self.topics:
            describe_share_group_offsets_response_topic.encode(out, version)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.topics = src.structs(DescribeShareGroupOffsetsResponseTopic, version)
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class DescribeShareGroupOffsetsResponse(Response):
    """Answers `DescribeShareGroupOffsetsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    __slots__ = ("throttle_time_ms", "groups", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribeShareGroupOffsetsResponseGroup] = [] if groups is EMPTY else groups
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.groups))
        for describe_share_group_offsets_response_group in self.groups:
            describe_share_group_offsets_response_group.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.groups = src.structs(DescribeShareGroupOffsetsResponseGroup, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.groups:
            yield entry.error_code


class DescribeShareGroupOffsetsRequestTopic(Struct):
    """Stands in `DescribeShareGroupOffsetsRequestGroup.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class DescribeShareGroupOffsetsRequestGroup(Struct):
    """Stands in `DescribeShareGroupOffsetsRequest.groups`."""

    __slots__ = ("group_id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareGroupOffsetsRequestTopic] | None = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.nullable_array_length(-1 if self.topics is None else len(self.topics))
        for describe_share_group_offsets_request_topic in self.topics or ():
            describe_share_group_offsets_request_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.topics = src.nullable_structs(DescribeShareGroupOffsetsRequestTopic, version)
        self.unknown_tags = src.tags()
        return self


class DescribeShareGroupOffsetsRequest(Request[DescribeShareGroupOffsetsResponse]):
    """Answered by `DescribeShareGroupOffsetsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DescribeShareGroupOffsetsResponse]] = DescribeShareGroupOffsetsResponse
    __slots__ = ("groups", "unknown_tags")

    def __init__(
        self,
        *,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.groups: list[DescribeShareGroupOffsetsRequestGroup] = [] if groups is EMPTY else groups
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.groups))
        for describe_share_group_offsets_request_group in self.groups:
            describe_share_group_offsets_request_group.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.groups = src.structs(DescribeShareGroupOffsetsRequestGroup, version)
        self.unknown_tags = src.tags()
        return self
