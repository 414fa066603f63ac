"""ListOffsets (key 2), versions 0-11, flexible from 6.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
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


class ListOffsetsPartitionResponse(Struct):
    """Stands in `ListOffsetsTopicResponse.partitions`."""

    __slots__ = (
        "partition_index",
        "error_code",
        "old_style_offsets",
        "timestamp",
        "offset",
        "leader_epoch",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        old_style_offsets: list[int] = EMPTY,  # v0
        timestamp: int = -1,  # v1+
        offset: int = -1,  # v1+
        leader_epoch: int = -1,  # v4+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.old_style_offsets: list[int] = [] if old_style_offsets is EMPTY else old_style_offsets
        self.timestamp: int = timestamp
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        if version <= 0:
            out.int64s(self.old_style_offsets)
        elif self.old_style_offsets:
            raise self.unsupported("old_style_offsets", version)
        if version >= 1:
            out.int64(self.timestamp)
            out.int64(self.offset)
        elif self.timestamp != -1:
            raise self.unsupported("timestamp", version)
        elif self.offset != -1:
            raise self.unsupported("offset", version)
        if version >= 4:
            out.int32(self.leader_epoch)
        elif self.leader_epoch != -1:
            raise self.unsupported("leader_epoch", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.old_style_offsets = src.int64s() if version <= 0 else []
        if version >= 1:
            self.timestamp = src.int64()
            self.offset = src.int64()
        else:
            self.timestamp = -1
            self.offset = -1
        self.leader_epoch = src.int32() if version >= 4 else -1
        self.unknown_tags = src.tags()
        return self


class ListOffsetsTopicResponse(Struct):
    """Stands in `ListOffsetsResponse.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartitionResponse] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for list_offsets_partition_response in self.partitions:
            list_offsets_partition_response.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(ListOffsetsPartitionResponse, version)
        self.unknown_tags = src.tags()
        return self


class ListOffsetsResponse(Response):
    """Answers `ListOffsetsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.LIST_OFFSETS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 11, flexible=6)
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v2+
        topics: list[ListOffsetsTopicResponse] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[ListOffsetsTopicResponse] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 2:
            out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for list_offsets_topic_response in self.topics:
            list_offsets_topic_response.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 2 else 0
        self.topics = src.structs(ListOffsetsTopicResponse, version)
        self.unknown_tags = src.tags()
        return self


class ListOffsetsPartition(Struct):
    """Stands in `ListOffsetsTopic.partitions`."""

    __slots__ = ("partition_index", "current_leader_epoch", "timestamp", "max_num_offsets", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,  # v4+
        timestamp: int = 0,
        max_num_offsets: int = 1,  # v0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.current_leader_epoch: int = current_leader_epoch
        self.timestamp: int = timestamp
        self.max_num_offsets: int = max_num_offsets
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        if version >= 4:
            out.int32(self.current_leader_epoch)
        out.int64(self.timestamp)
        if version <= 0:
            out.int32(self.max_num_offsets)
        elif self.max_num_offsets != 1:
            raise self.unsupported("max_num_offsets", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.current_leader_epoch = src.int32() if version >= 4 else -1
        self.timestamp = src.int64()
        self.max_num_offsets = src.int32() if version <= 0 else 1
        self.unknown_tags = src.tags()
        return self


class ListOffsetsTopic(Struct):
    """Stands in `ListOffsetsRequest.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ListOffsetsPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for list_offsets_partition in self.partitions:
            list_offsets_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(ListOffsetsPartition, version)
        self.unknown_tags = src.tags()
        return self


class ListOffsetsRequest(Request[ListOffsetsResponse]):
    """Answered by `ListOffsetsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.LIST_OFFSETS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 11, flexible=6)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ListOffsetsResponse]] = ListOffsetsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "isolation_level": 2,
        "current_leader_epoch": 4,
        "timeout_ms": 10,
    }
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms", "unknown_tags")

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,  # v2+
        topics: list[ListOffsetsTopic] = EMPTY,
        timeout_ms: int = 0,  # v10+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.replica_id: int = replica_id
        self.isolation_level: int = isolation_level
        self.topics: list[ListOffsetsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.replica_id)
        if version >= 2:
            out.int8(self.isolation_level)
        elif self.isolation_level != 0:
            raise self.unsupported("isolation_level", version)
        out.array_length(len(self.topics))
        for list_offsets_topic in self.topics:
            list_offsets_topic.encode(out, version)
        if version >= 10:
            out.int32(self.timeout_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.replica_id = src.int32()
        self.isolation_level = src.int8() if version >= 2 else 0
        self.topics = src.structs(ListOffsetsTopic, version)
        self.timeout_ms = src.int32() if version >= 10 else 0
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
