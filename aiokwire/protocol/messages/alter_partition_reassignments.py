"""AlterPartitionReassignments (key 45), versions 0-1, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


class ReassignablePartitionResponse(Struct):
    """Stands in `ReassignableTopicResponse.partitions`."""

    __slots__ = ("partition_index", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class ReassignableTopicResponse(Struct):
    """Stands in `AlterPartitionReassignmentsResponse.responses`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartitionResponse] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for reassignable_partition_response in self.partitions:
            reassignable_partition_response.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(ReassignablePartitionResponse, version)
        self.unknown_tags = src.tags()
        return self


class AlterPartitionReassignmentsResponse(Response):
    """Answers `AlterPartitionReassignmentsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    __slots__ = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,  # v1+
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[ReassignableTopicResponse] = [] if responses is EMPTY else responses
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        if version >= 1:
            out.boolean(self.allow_replication_factor_change)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.array_length(len(self.responses))
        for reassignable_topic_response in self.responses:
            reassignable_topic_response.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.allow_replication_factor_change = src.boolean() if version >= 1 else True
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.responses = src.structs(ReassignableTopicResponse, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ReassignablePartition(Struct):
    """Stands in `ReassignableTopic.partitions`."""

    __slots__ = ("partition_index", "replicas", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] | None = replicas
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.nullable_int32s(self.replicas)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.replicas = src.nullable_int32s()
        self.unknown_tags = src.tags()
        return self


class ReassignableTopic(Struct):
    """Stands in `AlterPartitionReassignmentsRequest.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[ReassignablePartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for reassignable_partition in self.partitions:
            reassignable_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(ReassignablePartition, version)
        self.unknown_tags = src.tags()
        return self


class AlterPartitionReassignmentsRequest(Request[AlterPartitionReassignmentsResponse]):
    """Answered by `AlterPartitionReassignmentsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[AlterPartitionReassignmentsResponse]] = AlterPartitionReassignmentsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"allow_replication_factor_change": 1}
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,  # v1+
        topics: list[ReassignableTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.topics: list[ReassignableTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.timeout_ms)
        if version >= 1:
            out.boolean(self.allow_replication_factor_change)
        elif not self.allow_replication_factor_change:
            raise self.unsupported("allow_replication_factor_change", version)
        out.array_length(len(self.topics))
        for reassignable_topic in self.topics:
            reassignable_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.timeout_ms = src.int32()
        self.allow_replication_factor_change = src.boolean() if version >= 1 else True
        self.topics = src.structs(ReassignableTopic, version)
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
