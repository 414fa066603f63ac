"""DescribeTransactions (key 65), versions 0, flexible from 0.

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
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class TopicData(Struct):
    """Stands in `TransactionState.topics`."""

    __slots__ = ("topic", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class TransactionState(Struct):
    """Stands in `DescribeTransactionsResponse.transaction_states`."""

    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.transactional_id: str = transactional_id
        self.transaction_state: str = transaction_state
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.transaction_start_time_ms: int = transaction_start_time_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.topics: list[TopicData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.string(self.transactional_id)
        out.string(self.transaction_state)
        out.int32(self.transaction_timeout_ms)
        out.int64(self.transaction_start_time_ms)
        out.int64(self.producer_id)
        out.int16(self.producer_epoch)
        out.array_length(len(self.topics))
        for topic_data in self.topics:
            topic_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.transactional_id = src.string()
        self.transaction_state = src.string()
        self.transaction_timeout_ms = src.int32()
        self.transaction_start_time_ms = src.int64()
        self.producer_id = src.int64()
        self.producer_epoch = src.int16()
        self.topics = src.structs(TopicData, version)
        self.unknown_tags = src.tags()
        return self


class DescribeTransactionsResponse(Response):
    """Answers `DescribeTransactionsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_TRANSACTIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "transaction_states", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.transaction_states: list[TransactionState] = [] if transaction_states is EMPTY else transaction_states
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.transaction_states))
        for transaction_state in self.transaction_states:
            transaction_state.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.transaction_states = src.structs(TransactionState, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.transaction_states:
            yield entry.error_code


class DescribeTransactionsRequest(Request[DescribeTransactionsResponse]):
    """Answered by `DescribeTransactionsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_TRANSACTIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DescribeTransactionsResponse]] = DescribeTransactionsResponse
    __slots__ = ("transactional_ids", "unknown_tags")

    def __init__(
        self,
        *,
        transactional_ids: list[str] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactional_ids: list[str] = [] if transactional_ids is EMPTY else transactional_ids
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.strings(self.transactional_ids)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactional_ids = src.strings()
        self.unknown_tags = src.tags()
        return self
