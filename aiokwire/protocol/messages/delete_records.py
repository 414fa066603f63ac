"""DeleteRecords (key 21), versions 0-2, flexible from 2.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

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


class DeleteRecordsPartitionResult(Struct):
    """Stands in `DeleteRecordsTopicResult.partitions`."""

    __slots__ = ("partition_index", "low_watermark", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.low_watermark: int = low_watermark
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.low_watermark)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.low_watermark = src.int64()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class DeleteRecordsTopicResult(Struct):
    """Stands in `DeleteRecordsResponse.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartitionResult] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for delete_records_partition_result in self.partitions:
            delete_records_partition_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(DeleteRecordsPartitionResult, version)
        self.unknown_tags = src.tags()
        return self


class DeleteRecordsResponse(Response):
    """Answers `DeleteRecordsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DELETE_RECORDS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DeleteRecordsTopicResult] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for delete_records_topic_result in self.topics:
            delete_records_topic_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.topics = src.structs(DeleteRecordsTopicResult, version)
        self.unknown_tags = src.tags()
        return self


class DeleteRecordsPartition(Struct):
    """Stands in `DeleteRecordsTopic.partitions`."""

    __slots__ = ("partition_index", "offset", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.offset: int = offset
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.offset)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.offset = src.int64()
        self.unknown_tags = src.tags()
        return self


class DeleteRecordsTopic(Struct):
    """Stands in `DeleteRecordsRequest.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DeleteRecordsPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for delete_records_partition in self.partitions:
            delete_records_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(DeleteRecordsPartition, version)
        self.unknown_tags = src.tags()
        return self


class DeleteRecordsRequest(Request[DeleteRecordsResponse]):
    """Answered by `DeleteRecordsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DELETE_RECORDS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DeleteRecordsResponse]] = DeleteRecordsResponse
    __slots__ = ("topics", "timeout_ms", "unknown_tags")

    def __init__(
        self,
        *,
        topics: list[DeleteRecordsTopic] = EMPTY,
        timeout_ms: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.topics))
        for delete_records_topic in self.topics:
            delete_records_topic.encode(out, version)
        out.int32(self.timeout_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.structs(DeleteRecordsTopic, version)
        self.timeout_ms = src.int32()
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
