"""FindCoordinator (key 10), versions 0-6, flexible from 3.

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


class Coordinator(Struct):
    """Stands in `FindCoordinatorResponse.coordinators`."""

    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.key: str = key
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.key)
        out.int32(self.node_id)
        out.string(self.host)
        out.int32(self.port)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.key = src.string()
        self.node_id = src.int32()
        self.host = src.string()
        self.port = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class FindCoordinatorResponse(Response):
    """Answers `FindCoordinatorRequest`."""

    API: ClassVar[ApiKey] = ApiKey.FIND_COORDINATOR
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 6, flexible=3)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "node_id",
        "host",
        "port",
        "coordinators",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v1+
        error_code: int = 0,  # v0-3
        error_message: str | None = "",  # v1-3
        node_id: int = 0,  # v0-3
        host: str = "",  # v0-3
        port: int = 0,  # v0-3
        coordinators: list[Coordinator] = EMPTY,  # v4+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.coordinators: list[Coordinator] = [] if coordinators is EMPTY else coordinators
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int32(self.throttle_time_ms)
        if version <= 3:
            out.int16(self.error_code)
        elif self.error_code != 0:
            raise self.unsupported("error_code", version)
        if 1 <= version <= 3:
            out.nullable_string(self.error_message)
        if version <= 3:
            out.int32(self.node_id)
            out.string(self.host)
            out.int32(self.port)
        elif self.node_id != 0:
            raise self.unsupported("node_id", version)
        elif self.host:
            raise self.unsupported("host", version)
        elif self.port != 0:
            raise self.unsupported("port", version)
        if version >= 4:
            out.array_length(len(self.coordinators))
            for coordinator in self.coordinators:
                coordinator.encode(out, version)
        elif self.coordinators:
            raise self.unsupported("coordinators", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.error_code = src.int16() if version <= 3 else 0
        self.error_message = src.nullable_string() if 1 <= version <= 3 else ""
        if version <= 3:
            self.node_id = src.int32()
            self.host = src.string()
            self.port = src.int32()
        else:
            self.node_id = 0
            self.host = ""
            self.port = 0
        self.coordinators = src.structs(Coordinator, version) if version >= 4 else []
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.coordinators:
            yield entry.error_code


class FindCoordinatorRequest(Request[FindCoordinatorResponse]):
    """Answered by `FindCoordinatorResponse`."""

    API: ClassVar[ApiKey] = ApiKey.FIND_COORDINATOR
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 6, flexible=3)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[FindCoordinatorResponse]] = FindCoordinatorResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"key_type": 1, "coordinator_keys": 4}
    __slots__ = ("key", "key_type", "coordinator_keys", "unknown_tags")

    def __init__(
        self,
        *,
        key: str = "",  # v0-3
        key_type: int = 0,  # v1+
        coordinator_keys: list[str] = EMPTY,  # v4+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.key: str = key
        self.key_type: int = key_type
        self.coordinator_keys: list[str] = [] if coordinator_keys is EMPTY else coordinator_keys
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 3:
            out.string(self.key)
        elif self.key:
            raise self.unsupported("key", version)
        if version >= 1:
            out.int8(self.key_type)
        elif self.key_type != 0:
            raise self.unsupported("key_type", version)
        if version >= 4:
            out.strings(self.coordinator_keys)
        elif self.coordinator_keys:
            raise self.unsupported("coordinator_keys", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.key = src.string() if version <= 3 else ""
        self.key_type = src.int8() if version >= 1 else 0
        self.coordinator_keys = src.strings() if version >= 4 else []
        self.unknown_tags = src.tags()
        return self
