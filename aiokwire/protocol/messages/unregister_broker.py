"""UnregisterBroker (key 64), versions 0, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    Request,
    Response,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class UnregisterBrokerResponse(Response):
    """Answers `UnregisterBrokerRequest`."""

    API: ClassVar[ApiKey] = ApiKey.UNREGISTER_BROKER
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class UnregisterBrokerRequest(Request[UnregisterBrokerResponse]):
    """Answered by `UnregisterBrokerResponse`."""

    API: ClassVar[ApiKey] = ApiKey.UNREGISTER_BROKER
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[UnregisterBrokerResponse]] = UnregisterBrokerResponse
    __slots__ = ("broker_id", "unknown_tags")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.unknown_tags = src.tags()
        return self
