"""RenewDelegationToken (key 39), versions 0-2, flexible from 2.

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


class RenewDelegationTokenResponse(Response):
    """Answers `RenewDelegationTokenRequest`."""

    API: ClassVar[ApiKey] = ApiKey.RENEW_DELEGATION_TOKEN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.throttle_time_ms: int = throttle_time_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.int64(self.expiry_timestamp_ms)
        out.int32(self.throttle_time_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.expiry_timestamp_ms = src.int64()
        self.throttle_time_ms = src.int32()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class RenewDelegationTokenRequest(Request[RenewDelegationTokenResponse]):
    """Answered by `RenewDelegationTokenResponse`."""

    API: ClassVar[ApiKey] = ApiKey.RENEW_DELEGATION_TOKEN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[RenewDelegationTokenResponse]] = RenewDelegationTokenResponse
    __slots__ = ("hmac", "renew_period_ms", "unknown_tags")

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.hmac: bytes = hmac
        self.renew_period_ms: int = renew_period_ms
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.bytes_(self.hmac)
        out.int64(self.renew_period_ms)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.hmac = src.bytes_()
        self.renew_period_ms = src.int64()
        self.unknown_tags = src.tags()
        return self
