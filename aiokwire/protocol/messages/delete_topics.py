"""DeleteTopics (key 20), versions 0-6, flexible from 4.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


class DeletableTopicResult(Struct):
    """Stands in `DeleteTopicsResponse.responses`."""

    __slots__ = ("name", "topic_id", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,  # v6+
        error_code: int = 0,
        error_message: str | None = None,  # v5+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if self.name is None and version < 6:
            raise self.unsupported("name", version)
        out.nullable_string(self.name)
        if version >= 6:
            out.uuid(self.topic_id)
        out.int16(self.error_code)
        if version >= 5:
            out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.nullable_string() if version >= 6 else src.string()
        self.topic_id = src.uuid() if version >= 6 else ZERO_UUID
        self.error_code = src.int16()
        self.error_message = src.nullable_string() if version >= 5 else None
        self.unknown_tags = src.tags()
        return self


class DeleteTopicsResponse(Response):
    """Answers `DeleteTopicsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DELETE_TOPICS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 6, flexible=4)
    __slots__ = ("throttle_time_ms", "responses", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v1+
        responses: list[DeletableTopicResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[DeletableTopicResult] = [] if responses is EMPTY else responses
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int32(self.throttle_time_ms)
        out.array_length(len(self.responses))
        for deletable_topic_result in self.responses:
            deletable_topic_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.responses = src.structs(DeletableTopicResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.responses:
            yield entry.error_code


class DeleteTopicState(Struct):
    """Stands in `DeleteTopicsRequest.topics`."""

    __slots__ = ("name", "topic_id", "unknown_tags")

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_string(self.name)
        out.uuid(self.topic_id)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.nullable_string()
        self.topic_id = src.uuid()
        self.unknown_tags = src.tags()
        return self


class DeleteTopicsRequest(Request[DeleteTopicsResponse]):
    """Answered by `DeleteTopicsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DELETE_TOPICS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 6, flexible=4)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[DeleteTopicsResponse]] = DeleteTopicsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"topics": 6, "name": 6, "topic_id": 6}
    __slots__ = ("topics", "topic_names", "timeout_ms", "unknown_tags")

    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] = EMPTY,  # v6+
        topic_names: list[str] = EMPTY,  # v0-5
        timeout_ms: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[DeleteTopicState] = [] if topics is EMPTY else topics
        self.topic_names: list[str] = [] if topic_names is EMPTY else topic_names
        self.timeout_ms: int = timeout_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 6:
            out.array_length(len(self.topics))
            for delete_topic_state in self.topics:
                delete_topic_state.encode(out, version)
        elif self.topics:
            raise self.unsupported("topics", version)
        if version <= 5:
            out.strings(self.topic_names)
        out.int32(self.timeout_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.structs(DeleteTopicState, version) if version >= 6 else []
        self.topic_names = src.strings() if version <= 5 else []
        self.timeout_ms = src.int32()
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
