"""InitializeShareGroupState (key 83), versions 0, flexible from 0.

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
    """Stands in `InitializeStateResult.partitions`."""

    __slots__ = ("partition", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class InitializeStateResult(Struct):
    """Stands in `InitializeShareGroupStateResponse.results`."""

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


class InitializeShareGroupStateResponse(Response):
    """Answers `InitializeShareGroupStateRequest`."""

    API: ClassVar[ApiKey] = ApiKey.INITIALIZE_SHARE_GROUP_STATE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("results", "unknown_tags")

    def __init__(
        self,
        *,
        results: list[InitializeStateResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.results: list[InitializeStateResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.results))
        for initialize_state_result in self.results:
            initialize_state_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.results = src.structs(InitializeStateResult, version)
        self.unknown_tags = src.tags()
        return self


class PartitionData(Struct):
    """Stands in `InitializeStateData.partitions`."""

    __slots__ = ("partition", "state_epoch", "start_offset", "unknown_tags")

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        start_offset: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition: int = partition
        self.state_epoch: int = state_epoch
        self.start_offset: int = start_offset
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition)
        out.int32(self.state_epoch)
        out.int64(self.start_offset)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition = src.int32()
        self.state_epoch = src.int32()
        self.start_offset = src.int64()
        self.unknown_tags = src.tags()
        return self


class InitializeStateData(Struct):
    """Stands in `InitializeShareGroupStateRequest.topics`."""

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


class InitializeShareGroupStateRequest(Request[InitializeShareGroupStateResponse]):
    """Answered by `InitializeShareGroupStateResponse`."""

    API: ClassVar[ApiKey] = ApiKey.INITIALIZE_SHARE_GROUP_STATE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[InitializeShareGroupStateResponse]] = InitializeShareGroupStateResponse
    __slots__ = ("group_id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[InitializeStateData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[InitializeStateData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.array_length(len(self.topics))
        for initialize_state_data in self.topics:
            initialize_state_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.topics = src.structs(InitializeStateData, version)
        self.unknown_tags = src.tags()
        return self
