"""DescribeProducers (key 61), versions 0, flexible from 0.

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


class ProducerState(Struct):
    """Stands in `PartitionResponse.active_producers`."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.last_sequence: int = last_sequence
        self.last_timestamp: int = last_timestamp
        self.coordinator_epoch: int = coordinator_epoch
        self.current_txn_start_offset: int = current_txn_start_offset
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int64(self.producer_id)
        out.int32(self.producer_epoch)
        out.int32(self.last_sequence)
        out.int64(self.last_timestamp)
        out.int32(self.coordinator_epoch)
        out.int64(self.current_txn_start_offset)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.producer_id = src.int64()
        self.producer_epoch = src.int32()
        self.last_sequence = src.int32()
        self.last_timestamp = src.int64()
        self.coordinator_epoch = src.int32()
        self.current_txn_start_offset = src.int64()
        self.unknown_tags = src.tags()
        return self


class PartitionResponse(Struct):
    """Stands in `TopicResponse.partitions`."""

    __slots__ = ("partition_index", "error_code", "error_message", "active_producers", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.active_producers: list[ProducerState] = [] if active_producers is EMPTY else active_producers
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.array_length(len(self.active_producers))
        for producer_state in self.active_producers:
            producer_state.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.active_producers = src.structs(ProducerState, version)
        self.unknown_tags = src.tags()
        return self


class TopicResponse(Struct):
    """Stands in `DescribeProducersResponse.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[PartitionResponse] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[PartitionResponse] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for partition_response in self.partitions:
            partition_response.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(PartitionResponse, version)
        self.unknown_tags = src.tags()
        return self


class DescribeProducersResponse(Response):
    """Answers `DescribeProducersRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_PRODUCERS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TopicResponse] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for topic_response in self.topics:
            topic_response.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.topics = src.structs(TopicResponse, version)
        self.unknown_tags = src.tags()
        return self


class TopicRequest(Struct):
    """Stands in `DescribeProducersRequest.topics`."""

    __slots__ = ("name", "partition_indexes", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int32s(self.partition_indexes)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partition_indexes = src.int32s()
        self.unknown_tags = src.tags()
        return self


class DescribeProducersRequest(Request[DescribeProducersResponse]):
    """Answered by `DescribeProducersResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_PRODUCERS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DescribeProducersResponse]] = DescribeProducersResponse
    __slots__ = ("topics", "unknown_tags")

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.topics))
        for topic_request in self.topics:
            topic_request.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.structs(TopicRequest, version)
        self.unknown_tags = src.tags()
        return self
