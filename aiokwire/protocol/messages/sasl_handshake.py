"""SaslHandshake (key 17), versions 0-1, not flexible.

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
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class SaslHandshakeResponse(Response):
    """Answers `SaslHandshakeRequest`."""

    API: ClassVar[ApiKey] = ApiKey.SASL_HANDSHAKE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=2)
    __slots__ = ("error_code", "mechanisms")

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] = EMPTY,
    ) -> None:
        self.error_code: int = error_code
        self.mechanisms: list[str] = [] if mechanisms is EMPTY else mechanisms

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.strings(self.mechanisms)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.mechanisms = src.strings()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class SaslHandshakeRequest(Request[SaslHandshakeResponse]):
    """Answered by `SaslHandshakeResponse`."""

    API: ClassVar[ApiKey] = ApiKey.SASL_HANDSHAKE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[SaslHandshakeResponse]] = SaslHandshakeResponse
    __slots__ = ("mechanism",)

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism: str = mechanism

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.mechanism)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.mechanism = src.string()
        return self
