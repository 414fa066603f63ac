"""TxnOffsetCommit (key 28), versions 0-5, flexible from 3.

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


class TxnOffsetCommitResponsePartition(Struct):
    """Stands in `TxnOffsetCommitResponseTopic.partitions`."""

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


class TxnOffsetCommitResponseTopic(Struct):
    """Stands in `TxnOffsetCommitResponse.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[TxnOffsetCommitResponsePartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for txn_offset_commit_response_partition in self.partitions:
            txn_offset_commit_response_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(TxnOffsetCommitResponsePartition, version)
        self.unknown_tags = src.tags()
        return self


class TxnOffsetCommitResponse(Response):
    """Answers `TxnOffsetCommitRequest`."""

    API: ClassVar[ApiKey] = ApiKey.TXN_OFFSET_COMMIT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=3)
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TxnOffsetCommitResponseTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for txn_offset_commit_response_topic in self.topics:
            txn_offset_commit_response_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.topics = src.structs(TxnOffsetCommitResponseTopic, version)
        self.unknown_tags = src.tags()
        return self


class TxnOffsetCommitRequestPartition(Struct):
    """Stands in `TxnOffsetCommitRequestTopic.partitions`."""

    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # v2+
        committed_metadata: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.committed_offset)
        if version >= 2:
            out.int32(self.committed_leader_epoch)
        out.nullable_string(self.committed_metadata)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.committed_offset = src.int64()
        self.committed_leader_epoch = src.int32() if version >= 2 else -1
        self.committed_metadata = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class TxnOffsetCommitRequestTopic(Struct):
    """Stands in `TxnOffsetCommitRequest.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[TxnOffsetCommitRequestPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for txn_offset_commit_request_partition in self.partitions:
            txn_offset_commit_request_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(TxnOffsetCommitRequestPartition, version)
        self.unknown_tags = src.tags()
        return self


class TxnOffsetCommitRequest(Request[TxnOffsetCommitResponse]):
    """Answered by `TxnOffsetCommitResponse`."""

    API: ClassVar[ApiKey] = ApiKey.TXN_OFFSET_COMMIT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=3)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[TxnOffsetCommitResponse]] = TxnOffsetCommitResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "generation_id": 3,
        "member_id": 3,
        "group_instance_id": 3,
        "committed_leader_epoch": 2,
    }
    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,  # v3+
        member_id: str = "",  # v3+
        group_instance_id: str | None = None,  # v3+
        topics: list[TxnOffsetCommitRequestTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactional_id: str = transactional_id
        self.group_id: str = group_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.topics: list[TxnOffsetCommitRequestTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.transactional_id)
        out.string(self.group_id)
        out.int64(self.producer_id)
        out.int16(self.producer_epoch)
        if version >= 3:
            out.int32(self.generation_id)
            out.string(self.member_id)
            out.nullable_string(self.group_instance_id)
        elif self.generation_id != -1:
            raise self.unsupported("generation_id", version)
        elif self.member_id:
            raise self.unsupported("member_id", version)
        elif self.group_instance_id is not None:
            raise self.unsupported("group_instance_id", version)
        out.array_length(len(self.topics))
        for txn_offset_commit_request_topic in self.topics:
            txn_offset_commit_request_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactional_id = src.string()
        self.group_id = src.string()
        self.producer_id = src.int64()
        self.producer_epoch = src.int16()
        if version >= 3:
            self.generation_id = src.int32()
            self.member_id = src.string()
            self.group_instance_id = src.nullable_string()
        else:
            self.generation_id = -1
            self.member_id = ""
            self.group_instance_id = None
        self.topics = src.structs(TxnOffsetCommitRequestTopic, version)
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.group_id
