"""SaslAuthenticate (key 36), versions 0-2, flexible from 2.

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


class SaslAuthenticateResponse(Response):
    """Answers `SaslAuthenticateRequest`."""

    API: ClassVar[ApiKey] = ApiKey.SASL_AUTHENTICATE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.auth_bytes: bytes = auth_bytes
        self.session_lifetime_ms: int = session_lifetime_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.bytes_(self.auth_bytes)
        if version >= 1:
            out.int64(self.session_lifetime_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.auth_bytes = src.bytes_()
        self.session_lifetime_ms = src.int64() if version >= 1 else 0
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class SaslAuthenticateRequest(Request[SaslAuthenticateResponse]):
    """Answered by `SaslAuthenticateResponse`."""

    API: ClassVar[ApiKey] = ApiKey.SASL_AUTHENTICATE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[SaslAuthenticateResponse]] = SaslAuthenticateResponse
    __slots__ = ("auth_bytes", "unknown_tags")

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.auth_bytes: bytes = auth_bytes
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.bytes_(self.auth_bytes)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.auth_bytes = src.bytes_()
        self.unknown_tags = src.tags()
        return self
