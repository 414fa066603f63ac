"""ReadShareGroupStateSummary (key 87), versions 0-1, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

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


class PartitionResult(Struct):
    """Stands in `ReadStateSummaryResult.partitions`."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.int32(self.state_epoch)
        out.int32(self.leader_epoch)
        out.int64(self.start_offset)
        if version >= 1:
            out.int32(self.delivery_complete_count)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.state_epoch = src.int32()
        self.leader_epoch = src.int32()
        self.start_offset = src.int64()
        self.delivery_complete_count = src.int32() if version >= 1 else -1
        self.unknown_tags = src.tags()
        return self


class ReadStateSummaryResult(Struct):
    """Stands in `ReadShareGroupStateSummaryResponse.results`."""

    __slots__ = ("topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionResult] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for partition_result in self.partitions:
            partition_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partitions = src.structs(PartitionResult, version)
        self.unknown_tags = src.tags()
        return self


class ReadShareGroupStateSummaryResponse(Response):
    """Answers `ReadShareGroupStateSummaryRequest`."""

    API: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    __slots__ = ("results", "unknown_tags")

    def __init__(
        self,
        *,
        results: list[ReadStateSummaryResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.results: list[ReadStateSummaryResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.results))
        for read_state_summary_result in self.results:
            read_state_summary_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.results = src.structs(ReadStateSummaryResult, version)
        self.unknown_tags = src.tags()
        return self


class PartitionData(Struct):
    """Stands in `ReadStateSummaryData.partitions`."""

    __slots__ = ("partition", "leader_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        partition: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition)
        out.int32(self.leader_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition = src.int32()
        self.leader_epoch = src.int32()
        self.unknown_tags = src.tags()
        return self


class ReadStateSummaryData(Struct):
    """Stands in `ReadShareGroupStateSummaryRequest.topics`."""

    __slots__ = ("topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for partition_data in self.partitions:
            partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partitions = src.structs(PartitionData, version)
        self.unknown_tags = src.tags()
        return self


class ReadShareGroupStateSummaryRequest(Request[ReadShareGroupStateSummaryResponse]):
    """Answered by `ReadShareGroupStateSummaryResponse`."""

    API: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ReadShareGroupStateSummaryResponse]] = ReadShareGroupStateSummaryResponse
    __slots__ = ("group_id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateSummaryData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[ReadStateSummaryData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.array_length(len(self.topics))
        for read_state_summary_data in self.topics:
            read_state_summary_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.topics = src.structs(ReadStateSummaryData, version)
        self.unknown_tags = src.tags()
        return self
