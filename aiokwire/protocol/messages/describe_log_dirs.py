"""DescribeLogDirs (key 35), versions 0-5, flexible from 2.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class DescribeLogDirsPartition(Struct):
    """Stands in `DescribeLogDirsTopic.partitions`."""

    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_size: int = partition_size
        self.offset_lag: int = offset_lag
        self.is_future_key: bool = is_future_key
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.partition_size)
        out.int64(self.offset_lag)
        out.boolean(self.is_future_key)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.partition_size = src.int64()
        self.offset_lag = src.int64()
        self.is_future_key = src.boolean()
        self.unknown_tags = src.tags()
        return self


class DescribeLogDirsTopic(Struct):
    """Stands in `DescribeLogDirsResult.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[DescribeLogDirsPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for describe_log_dirs_partition in self.partitions:
            describe_log_dirs_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(DescribeLogDirsPartition, version)
        self.unknown_tags = src.tags()
        return self


class DescribeLogDirsResult(Struct):
    """Stands in `DescribeLogDirsResponse.results`."""

    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = EMPTY,
        total_bytes: int = -1,  # v4+
        usable_bytes: int = -1,  # v4+
        is_cordoned: bool = False,  # v5+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.log_dir: str = log_dir
        self.topics: list[DescribeLogDirsTopic] = [] if topics is EMPTY else topics
        self.total_bytes: int = total_bytes
        self.usable_bytes: int = usable_bytes
        self.is_cordoned: bool = is_cordoned
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.string(self.log_dir)
        out.array_length(len(self.topics))
        for describe_log_dirs_topic in self.topics:
            describe_log_dirs_topic.encode(out, version)
        if version >= 4:
            out.int64(self.total_bytes)
            out.int64(self.usable_bytes)
        if version >= 5:
            out.boolean(self.is_cordoned)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.log_dir = src.string()
        self.topics = src.structs(DescribeLogDirsTopic, version)
        if version >= 4:
            self.total_bytes = src.int64()
            self.usable_bytes = src.int64()
        else:
            self.total_bytes = -1
            self.usable_bytes = -1
        self.is_cordoned = src.boolean() if version >= 5 else False
        self.unknown_tags = src.tags()
        return self


class DescribeLogDirsResponse(Response):
    """Answers `DescribeLogDirsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=2)
    __slots__ = ("throttle_time_ms", "error_code", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # v3+
        results: list[DescribeLogDirsResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results: list[DescribeLogDirsResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        if version >= 3:
            out.int16(self.error_code)
        out.array_length(len(self.results))
        for describe_log_dirs_result in self.results:
            describe_log_dirs_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16() if version >= 3 else 0
        self.results = src.structs(DescribeLogDirsResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.results:
            yield entry.error_code


class DescribableLogDirTopic(Struct):
    """Stands in `DescribeLogDirsRequest.topics`."""

    __slots__ = ("topic", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class DescribeLogDirsRequest(Request[DescribeLogDirsResponse]):
    """Answered by `DescribeLogDirsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_LOG_DIRS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DescribeLogDirsResponse]] = DescribeLogDirsResponse
    __slots__ = ("topics", "unknown_tags")

    def __init__(
        self,
        *,
        topics: list[DescribableLogDirTopic] | None = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[DescribableLogDirTopic] | None = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_array_length(-1 if self.topics is None else len(self.topics))
        for describable_log_dir_topic in self.topics or ():
            describable_log_dir_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.nullable_structs(DescribableLogDirTopic, version)
        self.unknown_tags = src.tags()
        return self
