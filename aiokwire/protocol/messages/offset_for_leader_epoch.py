"""OffsetForLeaderEpoch (key 23), versions 0-4, flexible from 4.

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


class EpochEndOffset(Struct):
    """Stands in `OffsetForLeaderTopicResult.partitions`."""

    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,  # v1+
        end_offset: int = -1,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.end_offset: int = end_offset
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.int32(self.partition)
        if version >= 1:
            out.int32(self.leader_epoch)
        out.int64(self.end_offset)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.partition = src.int32()
        self.leader_epoch = src.int32() if version >= 1 else -1
        self.end_offset = src.int64()
        self.unknown_tags = src.tags()
        return self


class OffsetForLeaderTopicResult(Struct):
    """Stands in `OffsetForLeaderEpochResponse.topics`."""

    __slots__ = ("topic", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[EpochEndOffset] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[EpochEndOffset] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.array_length(len(self.partitions))
        for epoch_end_offset in self.partitions:
            epoch_end_offset.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string()
        self.partitions = src.structs(EpochEndOffset, version)
        self.unknown_tags = src.tags()
        return self


class OffsetForLeaderEpochResponse(Response):
    """Answers `OffsetForLeaderEpochRequest`."""

    API: ClassVar[ApiKey] = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=4)
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v2+
        topics: list[OffsetForLeaderTopicResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetForLeaderTopicResult] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 2:
            out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for offset_for_leader_topic_result in self.topics:
            offset_for_leader_topic_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 2 else 0
        self.topics = src.structs(OffsetForLeaderTopicResult, version)
        self.unknown_tags = src.tags()
        return self


class OffsetForLeaderPartition(Struct):
    """Stands in `OffsetForLeaderTopic.partitions`."""

    __slots__ = ("partition", "current_leader_epoch", "leader_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,  # v2+
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition)
        if version >= 2:
            out.int32(self.current_leader_epoch)
        out.int32(self.leader_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition = src.int32()
        self.current_leader_epoch = src.int32() if version >= 2 else -1
        self.leader_epoch = src.int32()
        self.unknown_tags = src.tags()
        return self


class OffsetForLeaderTopic(Struct):
    """Stands in `OffsetForLeaderEpochRequest.topics`."""

    __slots__ = ("topic", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[OffsetForLeaderPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.array_length(len(self.partitions))
        for offset_for_leader_partition in self.partitions:
            offset_for_leader_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string()
        self.partitions = src.structs(OffsetForLeaderPartition, version)
        self.unknown_tags = src.tags()
        return self


class OffsetForLeaderEpochRequest(Request[OffsetForLeaderEpochResponse]):
    """Answered by `OffsetForLeaderEpochResponse`."""

    API: ClassVar[ApiKey] = ApiKey.OFFSET_FOR_LEADER_EPOCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=4)
    SERVED_FROM: ClassVar[int | None] = 2
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[OffsetForLeaderEpochResponse]] = OffsetForLeaderEpochResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"replica_id": 3, "current_leader_epoch": 2}
    __slots__ = ("replica_id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        replica_id: int = -2,  # v3+
        topics: list[OffsetForLeaderTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.replica_id: int = replica_id
        self.topics: list[OffsetForLeaderTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 3:
            out.int32(self.replica_id)
        out.array_length(len(self.topics))
        for offset_for_leader_topic in self.topics:
            offset_for_leader_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.replica_id = src.int32() if version >= 3 else -2
        self.topics = src.structs(OffsetForLeaderTopic, version)
        self.unknown_tags = src.tags()
        return self
