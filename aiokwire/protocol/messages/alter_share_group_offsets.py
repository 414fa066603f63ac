"""AlterShareGroupOffsets (key 91), versions 0, flexible from 0.

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


class AlterShareGroupOffsetsResponsePartition(Struct):
    """Stands in `AlterShareGroupOffsetsResponseTopic.partitions`."""

    __slots__ = ("partition_index", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class AlterShareGroupOffsetsResponseTopic(Struct):
    """Stands in `AlterShareGroupOffsetsResponse.responses`."""

    __slots__ = ("topic_name", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[AlterShareGroupOffsetsResponsePartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for alter_share_group_offsets_response_partition in self.partitions:
            alter_share_group_offsets_response_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.topic_id = src.uuid()
        self.partitions = src.structs(AlterShareGroupOffsetsResponsePartition, version)
        self.unknown_tags = src.tags()
        return self


class AlterShareGroupOffsetsResponse(Response):
    """Answers `AlterShareGroupOffsetsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_SHARE_GROUP_OFFSETS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[AlterShareGroupOffsetsResponseTopic] = [] if responses is EMPTY else responses
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.array_length(len(self.responses))
        for alter_share_group_offsets_response_topic in self.responses:
            alter_share_group_offsets_response_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.responses = src.structs(AlterShareGroupOffsetsResponseTopic, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class AlterShareGroupOffsetsRequestPartition(Struct):
    """Stands in `AlterShareGroupOffsetsRequestTopic.partitions`."""

    __slots__ = ("partition_index", "start_offset", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.start_offset)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.start_offset = src.int64()
        self.unknown_tags = src.tags()
        return self


class AlterShareGroupOffsetsRequestTopic(Struct):
    """Stands in `AlterShareGroupOffsetsRequest.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterShareGroupOffsetsRequestPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for alter_share_group_offsets_request_partition in self.partitions:
            alter_share_group_offsets_request_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(AlterShareGroupOffsetsRequestPartition, version)
        self.unknown_tags = src.tags()
        return self


class AlterShareGroupOffsetsRequest(Request[AlterShareGroupOffsetsResponse]):
    """Answered by `AlterShareGroupOffsetsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_SHARE_GROUP_OFFSETS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[AlterShareGroupOffsetsResponse]] = AlterShareGroupOffsetsResponse
    __slots__ = ("group_id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[AlterShareGroupOffsetsRequestTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.array_length(len(self.topics))
        for alter_share_group_offsets_request_topic in self.topics:
            alter_share_group_offsets_request_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.topics = src.structs(AlterShareGroupOffsetsRequestTopic, version)
        self.unknown_tags = src.tags()
        return self
