"""AlterReplicaLogDirs (key 34), versions 0-2, flexible from 2.

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


class AlterReplicaLogDirPartitionResult(Struct):
    """Stands in `AlterReplicaLogDirTopicResult.partitions`."""

    __slots__ = ("partition_index", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class AlterReplicaLogDirTopicResult(Struct):
    """Stands in `AlterReplicaLogDirsResponse.results`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterReplicaLogDirPartitionResult] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for alter_replica_log_dir_partition_result in self.partitions:
            alter_replica_log_dir_partition_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(AlterReplicaLogDirPartitionResult, version)
        self.unknown_tags = src.tags()
        return self


class AlterReplicaLogDirsResponse(Response):
    """Answers `AlterReplicaLogDirsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_REPLICA_LOG_DIRS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    __slots__ = ("throttle_time_ms", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterReplicaLogDirTopicResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.results))
        for alter_replica_log_dir_topic_result in self.results:
            alter_replica_log_dir_topic_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.results = src.structs(AlterReplicaLogDirTopicResult, version)
        self.unknown_tags = src.tags()
        return self


class AlterReplicaLogDirTopic(Struct):
    """Stands in `AlterReplicaLogDir.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class AlterReplicaLogDir(Struct):
    """Stands in `AlterReplicaLogDirsRequest.dirs`."""

    __slots__ = ("path", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.path: str = path
        self.topics: list[AlterReplicaLogDirTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.path)
        out.array_length(len(self.topics))
        for alter_replica_log_dir_topic in self.topics:
            alter_replica_log_dir_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.path = src.string()
        self.topics = src.structs(AlterReplicaLogDirTopic, version)
        self.unknown_tags = src.tags()
        return self


class AlterReplicaLogDirsRequest(Request[AlterReplicaLogDirsResponse]):
    """Answered by `AlterReplicaLogDirsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_REPLICA_LOG_DIRS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[AlterReplicaLogDirsResponse]] = AlterReplicaLogDirsResponse
    __slots__ = ("dirs", "unknown_tags")

    def __init__(
        self,
        *,
        dirs: list[AlterReplicaLogDir] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.dirs: list[AlterReplicaLogDir] = [] if dirs is EMPTY else dirs
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.dirs))
        for alter_replica_log_dir in self.dirs:
            alter_replica_log_dir.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.dirs = src.structs(AlterReplicaLogDir, version)
        self.unknown_tags = src.tags()
        return self
