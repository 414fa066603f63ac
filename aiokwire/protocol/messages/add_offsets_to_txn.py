"""AddOffsetsToTxn (key 25), versions 0-4, flexible from 3.

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


class AddOffsetsToTxnResponse(Response):
    """Answers `AddOffsetsToTxnRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ADD_OFFSETS_TO_TXN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=3)
    __slots__ = ("throttle_time_ms", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class AddOffsetsToTxnRequest(Request[AddOffsetsToTxnResponse]):
    """Answered by `AddOffsetsToTxnResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ADD_OFFSETS_TO_TXN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=3)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[AddOffsetsToTxnResponse]] = AddOffsetsToTxnResponse
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id", "unknown_tags")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.transactional_id)
        out.int64(self.producer_id)
        out.int16(self.producer_epoch)
        out.string(self.group_id)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactional_id = src.string()
        self.producer_id = src.int64()
        self.producer_epoch = src.int16()
        self.group_id = src.string()
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.transactional_id
