"""Envelope (key 58), versions 0, flexible from 0.

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


class EnvelopeResponse(Response):
    """Answers `EnvelopeRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ENVELOPE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("response_data", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        response_data: bytes | None = None,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.response_data: bytes | None = response_data
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_bytes(self.response_data)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.response_data = src.nullable_bytes()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class EnvelopeRequest(Request[EnvelopeResponse]):
    """Answered by `EnvelopeResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ENVELOPE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[EnvelopeResponse]] = EnvelopeResponse
    __slots__ = ("request_data", "request_principal", "client_host_address", "unknown_tags")

    def __init__(
        self,
        *,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.request_data: bytes = request_data
        self.request_principal: bytes | None = request_principal
        self.client_host_address: bytes = client_host_address
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.bytes_(self.request_data)
        out.nullable_bytes(self.request_principal)
        out.bytes_(self.client_host_address)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.request_data = src.bytes_()
        self.request_principal = src.nullable_bytes()
        self.client_host_address = src.bytes_()
        self.unknown_tags = src.tags()
        return self
