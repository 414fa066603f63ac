"""InitProducerId (key 22), versions 0-6, flexible from 2.

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


class InitProducerIdResponse(Response):
    """Answers `InitProducerIdRequest`."""

    API: ClassVar[ApiKey] = ApiKey.INIT_PRODUCER_ID
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 6, flexible=2)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,  # v6+
        ongoing_txn_producer_epoch: int = -1,  # v6+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.ongoing_txn_producer_id: int = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch: int = ongoing_txn_producer_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.int64(self.producer_id)
        out.int16(self.producer_epoch)
        if version >= 6:
            out.int64(self.ongoing_txn_producer_id)
            out.int16(self.ongoing_txn_producer_epoch)
        elif self.ongoing_txn_producer_id != -1:
            raise self.unsupported("ongoing_txn_producer_id", version)
        elif self.ongoing_txn_producer_epoch != -1:
            raise self.unsupported("ongoing_txn_producer_epoch", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.producer_id = src.int64()
        self.producer_epoch = src.int16()
        if version >= 6:
            self.ongoing_txn_producer_id = src.int64()
            self.ongoing_txn_producer_epoch = src.int16()
        else:
            self.ongoing_txn_producer_id = -1
            self.ongoing_txn_producer_epoch = -1
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class InitProducerIdRequest(Request[InitProducerIdResponse]):
    """Answered by `InitProducerIdResponse`."""

    API: ClassVar[ApiKey] = ApiKey.INIT_PRODUCER_ID
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 6, flexible=2)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = 6
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[InitProducerIdResponse]] = InitProducerIdResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "producer_id": 3,
        "producer_epoch": 3,
        "enable2_pc": 6,
        "keep_prepared_txn": 6,
    }
    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,  # v3+
        producer_epoch: int = -1,  # v3+
        enable2_pc: bool = False,  # v6+
        keep_prepared_txn: bool = False,  # v6+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.enable2_pc: bool = enable2_pc
        self.keep_prepared_txn: bool = keep_prepared_txn
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_string(self.transactional_id)
        out.int32(self.transaction_timeout_ms)
        if version >= 3:
            out.int64(self.producer_id)
            out.int16(self.producer_epoch)
        elif self.producer_id != -1:
            raise self.unsupported("producer_id", version)
        elif self.producer_epoch != -1:
            raise self.unsupported("producer_epoch", version)
        if version >= 6:
            out.boolean(self.enable2_pc)
            out.boolean(self.keep_prepared_txn)
        elif self.enable2_pc:
            raise self.unsupported("enable2_pc", version)
        elif self.keep_prepared_txn:
            raise self.unsupported("keep_prepared_txn", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactional_id = src.nullable_string()
        self.transaction_timeout_ms = src.int32()
        if version >= 3:
            self.producer_id = src.int64()
            self.producer_epoch = src.int16()
        else:
            self.producer_id = -1
            self.producer_epoch = -1
        if version >= 6:
            self.enable2_pc = src.boolean()
            self.keep_prepared_txn = src.boolean()
        else:
            self.enable2_pc = False
            self.keep_prepared_txn = False
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.transactional_id or ""
