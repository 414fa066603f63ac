"""OffsetDelete (key 47), versions 0, not flexible.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    Request,
    Response,
    Struct,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class OffsetDeleteResponsePartition(Struct):
    """Stands in `OffsetDeleteResponseTopic.partitions`."""

    __slots__ = ("partition_index", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        return self


class OffsetDeleteResponseTopic(Struct):
    """Stands in `OffsetDeleteResponse.topics`."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteResponsePartition] = [] if partitions is EMPTY else partitions

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for offset_delete_response_partition in self.partitions:
            offset_delete_response_partition.encode(out, version)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(OffsetDeleteResponsePartition, version)
        return self


class OffsetDeleteResponse(Response):
    """Answers `OffsetDeleteRequest`."""

    API: ClassVar[ApiKey] = ApiKey.OFFSET_DELETE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=1)
    __slots__ = ("error_code", "throttle_time_ms", "topics")

    def __init__(
        self,
        *,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetDeleteResponseTopic] = [] if topics is EMPTY else topics

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for offset_delete_response_topic in self.topics:
            offset_delete_response_topic.encode(out, version)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.throttle_time_ms = src.int32()
        self.topics = src.structs(OffsetDeleteResponseTopic, version)
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class OffsetDeleteRequestPartition(Struct):
    """Stands in `OffsetDeleteRequestTopic.partitions`."""

    __slots__ = ("partition_index",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index: int = partition_index

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        return self


class OffsetDeleteRequestTopic(Struct):
    """Stands in `OffsetDeleteRequest.topics`."""

    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] = EMPTY,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteRequestPartition] = [] if partitions is EMPTY else partitions

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for offset_delete_request_partition in self.partitions:
            offset_delete_request_partition.encode(out, version)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(OffsetDeleteRequestPartition, version)
        return self


class OffsetDeleteRequest(Request[OffsetDeleteResponse]):
    """Answered by `OffsetDeleteResponse`."""

    API: ClassVar[ApiKey] = ApiKey.OFFSET_DELETE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=1)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[OffsetDeleteResponse]] = OffsetDeleteResponse
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] = EMPTY,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetDeleteRequestTopic] = [] if topics is EMPTY else topics

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.array_length(len(self.topics))
        for offset_delete_request_topic in self.topics:
            offset_delete_request_topic.encode(out, version)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.topics = src.structs(OffsetDeleteRequestTopic, version)
        return self

    def coordinator_key(self) -> str:
        return self.group_id
