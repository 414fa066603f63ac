"""OffsetCommit (key 8), versions 0-10, flexible from 8.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
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


class OffsetCommitResponsePartition(Struct):
    """Stands in `OffsetCommitResponseTopic.partitions`."""

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


class OffsetCommitResponseTopic(Struct):
    """Stands in `OffsetCommitResponse.topics`."""

    __slots__ = ("name", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",  # v0-9
        topic_id: bytes = ZERO_UUID,  # v10+
        partitions: list[OffsetCommitResponsePartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 9:
            out.string(self.name)
        if version >= 10:
            out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for offset_commit_response_partition in self.partitions:
            offset_commit_response_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string() if version <= 9 else ""
        self.topic_id = src.uuid() if version >= 10 else ZERO_UUID
        self.partitions = src.structs(OffsetCommitResponsePartition, version)
        self.unknown_tags = src.tags()
        return self


class OffsetCommitResponse(Response):
    """Answers `OffsetCommitRequest`."""

    API: ClassVar[ApiKey] = ApiKey.OFFSET_COMMIT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 10, flexible=8)
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v3+
        topics: list[OffsetCommitResponseTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 3:
            out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for offset_commit_response_topic in self.topics:
            offset_commit_response_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 3 else 0
        self.topics = src.structs(OffsetCommitResponseTopic, version)
        self.unknown_tags = src.tags()
        return self


class OffsetCommitRequestPartition(Struct):
    """Stands in `OffsetCommitRequestTopic.partitions`."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "commit_timestamp",
        "committed_metadata",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # v6+
        commit_timestamp: int = -1,  # v1
        committed_metadata: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.commit_timestamp: int = commit_timestamp
        self.committed_metadata: str | None = committed_metadata
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.committed_offset)
        if version >= 6:
            out.int32(self.committed_leader_epoch)
        if version == 1:
            out.int64(self.commit_timestamp)
        elif self.commit_timestamp != -1:
            raise self.unsupported("commit_timestamp", version)
        out.nullable_string(self.committed_metadata)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.committed_offset = src.int64()
        self.committed_leader_epoch = src.int32() if version >= 6 else -1
        self.commit_timestamp = src.int64() if version == 1 else -1
        self.committed_metadata = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class OffsetCommitRequestTopic(Struct):
    """Stands in `OffsetCommitRequest.topics`."""

    __slots__ = ("name", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",  # v0-9
        topic_id: bytes = ZERO_UUID,  # v10+
        partitions: list[OffsetCommitRequestPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 9:
            out.string(self.name)
        if version >= 10:
            out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for offset_commit_request_partition in self.partitions:
            offset_commit_request_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string() if version <= 9 else ""
        self.topic_id = src.uuid() if version >= 10 else ZERO_UUID
        self.partitions = src.structs(OffsetCommitRequestPartition, version)
        self.unknown_tags = src.tags()
        return self


class OffsetCommitRequest(Request[OffsetCommitResponse]):
    """Answered by `OffsetCommitResponse`."""

    API: ClassVar[ApiKey] = ApiKey.OFFSET_COMMIT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 10, flexible=8)
    SERVED_FROM: ClassVar[int | None] = 2
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[OffsetCommitResponse]] = OffsetCommitResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "generation_id_or_member_epoch": 1,
        "member_id": 1,
        "group_instance_id": 7,
        "retention_time_ms": 2,
        "topic_id": 10,
        "committed_leader_epoch": 6,
        "commit_timestamp": 1,
    }
    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,  # v1+
        member_id: str = "",  # v1+
        group_instance_id: str | None = None,  # v7+
        retention_time_ms: int = -1,  # v2-4
        topics: list[OffsetCommitRequestTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.retention_time_ms: int = retention_time_ms
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        if version >= 1:
            out.int32(self.generation_id_or_member_epoch)
            out.string(self.member_id)
        if version >= 7:
            out.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise self.unsupported("group_instance_id", version)
        if 2 <= version <= 4:
            out.int64(self.retention_time_ms)
        out.array_length(len(self.topics))
        for offset_commit_request_topic in self.topics:
            offset_commit_request_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        if version >= 1:
            self.generation_id_or_member_epoch = src.int32()
            self.member_id = src.string()
        else:
            self.generation_id_or_member_epoch = -1
            self.member_id = ""
        self.group_instance_id = src.nullable_string() if version >= 7 else None
        self.retention_time_ms = src.int64() if 2 <= version <= 4 else -1
        self.topics = src.structs(OffsetCommitRequestTopic, version)
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.group_id
