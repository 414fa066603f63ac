"""Heartbeat (key 12), versions 0-4, flexible from 4.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    Request,
    Response,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class HeartbeatResponse(Response):
    """Answers `HeartbeatRequest`."""

    API: ClassVar[ApiKey] = ApiKey.HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=4)
    __slots__ = ("throttle_time_ms", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v1+
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class HeartbeatRequest(Request[HeartbeatResponse]):
    """Answered by `HeartbeatResponse`."""

    API: ClassVar[ApiKey] = ApiKey.HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=4)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[HeartbeatResponse]] = HeartbeatResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"group_instance_id": 3}
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.int32(self.generation_id)
        out.string(self.member_id)
        if version >= 3:
            out.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise self.unsupported("group_instance_id", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.generation_id = src.int32()
        self.member_id = src.string()
        self.group_instance_id = src.nullable_string() if version >= 3 else None
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.group_id
