"""AssignReplicasToDirs (key 73), versions 0, flexible from 0.

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


class AssignReplicasToDirsResponsePartitionData(Struct):
    """Stands in `AssignReplicasToDirsResponseTopicData.partitions`."""

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


class AssignReplicasToDirsResponseTopicData(Struct):
    """Stands in `AssignReplicasToDirsResponseDirectoryData.topics`."""

    __slots__ = ("topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AssignReplicasToDirsResponsePartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[AssignReplicasToDirsResponsePartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for assign_replicas_to_dirs_response_partition_data in self.partitions:
            assign_replicas_to_dirs_response_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partitions = src.structs(AssignReplicasToDirsResponsePartitionData, version)
        self.unknown_tags = src.tags()
        return self


class AssignReplicasToDirsResponseDirectoryData(Struct):
    """Stands in `AssignReplicasToDirsResponse.directories`."""

    __slots__ = ("id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
        topics: list[AssignReplicasToDirsResponseTopicData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.id: bytes = id
        self.topics: list[AssignReplicasToDirsResponseTopicData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.id)
        out.array_length(len(self.topics))
        for assign_replicas_to_dirs_response_topic_data in self.topics:
            assign_replicas_to_dirs_response_topic_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.id = src.uuid()
        self.topics = src.structs(AssignReplicasToDirsResponseTopicData, version)
        self.unknown_tags = src.tags()
        return self


class AssignReplicasToDirsResponse(Response):
    """Answers `AssignReplicasToDirsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ASSIGN_REPLICAS_TO_DIRS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "directories", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[AssignReplicasToDirsResponseDirectoryData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.directories: list[AssignReplicasToDirsResponseDirectoryData] = [] if directories is EMPTY else directories
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.array_length(len(self.directories))
        for assign_replicas_to_dirs_response_directory_data in self.directories:
            assign_replicas_to_dirs_response_directory_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.directories = src.structs(AssignReplicasToDirsResponseDirectoryData, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class AssignReplicasToDirsRequestPartitionData(Struct):
    """Stands in `AssignReplicasToDirsRequestTopicData.partitions`."""

    __slots__ = ("partition_index", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.unknown_tags = src.tags()
        return self


class AssignReplicasToDirsRequestTopicData(Struct):
    """Stands in `AssignReplicasToDirsRequestDirectoryData.topics`."""

    __slots__ = ("topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AssignReplicasToDirsRequestPartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[AssignReplicasToDirsRequestPartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for assign_replicas_to_dirs_request_partition_data in self.partitions:
            assign_replicas_to_dirs_request_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partitions = src.structs(AssignReplicasToDirsRequestPartitionData, version)
        self.unknown_tags = src.tags()
        return self


class AssignReplicasToDirsRequestDirectoryData(Struct):
    """Stands in `AssignReplicasToDirsRequest.directories`."""

    __slots__ = ("id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        id: bytes = ZERO_UUID,
        topics: list[AssignReplicasToDirsRequestTopicData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.id: bytes = id
        self.topics: list[AssignReplicasToDirsRequestTopicData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.id)
        out.array_length(len(self.topics))
        for assign_replicas_to_dirs_request_topic_data in self.topics:
            assign_replicas_to_dirs_request_topic_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.id = src.uuid()
        self.topics = src.structs(AssignReplicasToDirsRequestTopicData, version)
        self.unknown_tags = src.tags()
        return self


class AssignReplicasToDirsRequest(Request[AssignReplicasToDirsResponse]):
    """Answered by `AssignReplicasToDirsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ASSIGN_REPLICAS_TO_DIRS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[AssignReplicasToDirsResponse]] = AssignReplicasToDirsResponse
    __slots__ = ("broker_id", "broker_epoch", "directories", "unknown_tags")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        directories: list[AssignReplicasToDirsRequestDirectoryData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.directories: list[AssignReplicasToDirsRequestDirectoryData] = [] if directories is EMPTY else directories
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        out.int64(self.broker_epoch)
        out.array_length(len(self.directories))
        for assign_replicas_to_dirs_request_directory_data in self.directories:
            assign_replicas_to_dirs_request_directory_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.broker_epoch = src.int64()
        self.directories = src.structs(AssignReplicasToDirsRequestDirectoryData, version)
        self.unknown_tags = src.tags()
        return self
