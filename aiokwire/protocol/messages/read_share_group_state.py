"""ReadShareGroupState (key 84), versions 0, flexible from 0.

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


class StateBatch(Struct):
    """Stands in `PartitionResult.state_batches`."""

    __slots__ = ("first_offset", "last_offset", "delivery_state", "delivery_count", "unknown_tags")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int64(self.first_offset)
        out.int64(self.last_offset)
        out.int8(self.delivery_state)
        out.int16(self.delivery_count)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.first_offset = src.int64()
        self.last_offset = src.int64()
        self.delivery_state = src.int8()
        self.delivery_count = src.int16()
        self.unknown_tags = src.tags()
        return self


class PartitionResult(Struct):
    """Stands in `ReadStateResult.partitions`."""

    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "start_offset",
        "state_batches",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.state_epoch: int = state_epoch
        self.start_offset: int = start_offset
        self.state_batches: list[StateBatch] = [] if state_batches is EMPTY else state_batches
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.int32(self.state_epoch)
        out.int64(self.start_offset)
        out.array_length(len(self.state_batches))
        for state_batch in self.state_batches:
            state_batch.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.state_epoch = src.int32()
        self.start_offset = src.int64()
        self.state_batches = src.structs(StateBatch, version)
        self.unknown_tags = src.tags()
        return self


class ReadStateResult(Struct):
    """Stands in `ReadShareGroupStateResponse.results`."""

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


class ReadShareGroupStateResponse(Response):
    """Answers `ReadShareGroupStateRequest`."""

    API: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("results", "unknown_tags")

    def __init__(
        self,
        *,
        results: list[ReadStateResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.results: list[ReadStateResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.results))
        for read_state_result in self.results:
            read_state_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.results = src.structs(ReadStateResult, version)
        self.unknown_tags = src.tags()
        return self


class PartitionData(Struct):
    """Stands in `ReadStateData.partitions`."""

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


class ReadStateData(Struct):
    """Stands in `ReadShareGroupStateRequest.topics`."""

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


class ReadShareGroupStateRequest(Request[ReadShareGroupStateResponse]):
    """Answered by `ReadShareGroupStateResponse`."""

    API: ClassVar[ApiKey] = ApiKey.READ_SHARE_GROUP_STATE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ReadShareGroupStateResponse]] = ReadShareGroupStateResponse
    __slots__ = ("group_id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[ReadStateData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[ReadStateData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.array_length(len(self.topics))
        for read_state_data in self.topics:
            read_state_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.topics = src.structs(ReadStateData, version)
        self.unknown_tags = src.tags()
        return self
