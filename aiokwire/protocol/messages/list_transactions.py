"""ListTransactions (key 66), versions 0-2, flexible from 0.

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


class TransactionState(Struct):
    """Stands in `ListTransactionsResponse.transaction_states`."""

    __slots__ = ("transactional_id", "producer_id", "transaction_state", "unknown_tags")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.transaction_state: str = transaction_state
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.transactional_id)
        out.int64(self.producer_id)
        out.string(self.transaction_state)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactional_id = src.string()
        self.producer_id = src.int64()
        self.transaction_state = src.string()
        self.unknown_tags = src.tags()
        return self


class ListTransactionsResponse(Response):
    """Answers `ListTransactionsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.LIST_TRANSACTIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[TransactionState] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states: list[TransactionState] = [] if transaction_states is EMPTY else transaction_states
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.strings(self.unknown_state_filters)
        out.array_length(len(self.transaction_states))
        for transaction_state in self.transaction_states:
            transaction_state.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.unknown_state_filters = src.strings()
        self.transaction_states = src.structs(TransactionState, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ListTransactionsRequest(Request[ListTransactionsResponse]):
    """Answered by `ListTransactionsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.LIST_TRANSACTIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ListTransactionsResponse]] = ListTransactionsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"duration_filter": 1, "transactional_id_pattern": 2}
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern", "unknown_tags")

    def __init__(
        self,
        *,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,  # v1+
        transactional_id_pattern: str | None = None,  # v2+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters: list[int] = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter: int = duration_filter
        self.transactional_id_pattern: str | None = transactional_id_pattern
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.strings(self.state_filters)
        out.int64s(self.producer_id_filters)
        if version >= 1:
            out.int64(self.duration_filter)
        elif self.duration_filter != -1:
            raise self.unsupported("duration_filter", version)
        if version >= 2:
            out.nullable_string(self.transactional_id_pattern)
        elif self.transactional_id_pattern is not None:
            raise self.unsupported("transactional_id_pattern", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.state_filters = src.strings()
        self.producer_id_filters = src.int64s()
        self.duration_filter = src.int64() if version >= 1 else -1
        self.transactional_id_pattern = src.nullable_string() if version >= 2 else None
        self.unknown_tags = src.tags()
        return self
