"""CreatePartitions (key 37), versions 0-3, flexible from 2.

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
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class CreatePartitionsTopicResult(Struct):
    """Stands in `CreatePartitionsResponse.results`."""

    __slots__ = ("name", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class CreatePartitionsResponse(Response):
    """Answers `CreatePartitionsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.CREATE_PARTITIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    __slots__ = ("throttle_time_ms", "results", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[CreatePartitionsTopicResult] = [] if results is EMPTY else results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.results))
        for create_partitions_topic_result in self.results:
            create_partitions_topic_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.results = src.structs(CreatePartitionsTopicResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.results:
            yield entry.error_code


class CreatePartitionsAssignment(Struct):
    """Stands in `CreatePartitionsTopic.assignments`."""

    __slots__ = ("broker_ids", "unknown_tags")

    def __init__(
        self,
        *,
        broker_ids: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_ids: list[int] = [] if broker_ids is EMPTY else broker_ids
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32s(self.broker_ids)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_ids = src.int32s()
        self.unknown_tags = src.tags()
        return self


class CreatePartitionsTopic(Struct):
    """Stands in `CreatePartitionsRequest.topics`."""

    __slots__ = ("name", "count", "assignments", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.count: int = count
        self.assignments: list[CreatePartitionsAssignment] | None = [] if assignments is EMPTY else assignments
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int32(self.count)
        out.nullable_array_length(-1 if self.assignments is None else len(self.assignments))
        for create_partitions_assignment in self.assignments or ():
            create_partitions_assignment.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.count = src.int32()
        self.assignments = src.nullable_structs(CreatePartitionsAssignment, version)
        self.unknown_tags = src.tags()
        return self


class CreatePartitionsRequest(Request[CreatePartitionsResponse]):
    """Answered by `CreatePartitionsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.CREATE_PARTITIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[CreatePartitionsResponse]] = CreatePartitionsResponse
    __slots__ = ("topics", "timeout_ms", "validate_only", "unknown_tags")

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] = EMPTY,
        timeout_ms: int = 0,
        validate_only: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.topics))
        for create_partitions_topic in self.topics:
            create_partitions_topic.encode(out, version)
        out.int32(self.timeout_ms)
        out.boolean(self.validate_only)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.structs(CreatePartitionsTopic, version)
        self.timeout_ms = src.int32()
        self.validate_only = src.boolean()
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
