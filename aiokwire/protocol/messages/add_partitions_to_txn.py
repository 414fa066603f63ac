"""AddPartitionsToTxn (key 24), versions 0-5, flexible from 3.

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


class AddPartitionsToTxnPartitionResult(Struct):
    """Stands in `AddPartitionsToTxnTopicResult.results_by_partition`."""

    __slots__ = ("partition_index", "partition_error_code", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_error_code: int = partition_error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.partition_error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.partition_error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class AddPartitionsToTxnTopicResult(Struct):
    """Stands in `AddPartitionsToTxnResult.topic_results`."""

    __slots__ = ("name", "results_by_partition", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = (
            [] if results_by_partition is EMPTY else results_by_partition
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.results_by_partition))
        for add_partitions_to_txn_partition_result in self.results_by_partition:
            add_partitions_to_txn_partition_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.results_by_partition = src.structs(AddPartitionsToTxnPartitionResult, version)
        self.unknown_tags = src.tags()
        return self


class AddPartitionsToTxnResult(Struct):
    """Stands in `AddPartitionsToTxnResponse.results_by_transaction`."""

    __slots__ = ("transactional_id", "topic_results", "unknown_tags")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactional_id: str = transactional_id
        self.topic_results: list[AddPartitionsToTxnTopicResult] = [] if topic_results is EMPTY else topic_results
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.transactional_id)
        out.array_length(len(self.topic_results))
        for add_partitions_to_txn_topic_result in self.topic_results:
            add_partitions_to_txn_topic_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactional_id = src.string()
        self.topic_results = src.structs(AddPartitionsToTxnTopicResult, version)
        self.unknown_tags = src.tags()
        return self


class AddPartitionsToTxnResponse(Response):
    """Answers `AddPartitionsToTxnRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ADD_PARTITIONS_TO_TXN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=3)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results_by_transaction",
        "results_by_topic_v3_and_below",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,  # v4+
        results_by_transaction: list[AddPartitionsToTxnResult] = EMPTY,  # v4+
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = EMPTY,  # v0-3
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results_by_transaction: list[AddPartitionsToTxnResult] = (
            [] if results_by_transaction is EMPTY else results_by_transaction
        )
        self.results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = (
            [] if results_by_topic_v3_and_below is EMPTY else results_by_topic_v3_and_below
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        if version >= 4:
            out.int16(self.error_code)
            out.array_length(len(self.results_by_transaction))
            for add_partitions_to_txn_result in self.results_by_transaction:
                add_partitions_to_txn_result.encode(out, version)
        elif self.results_by_transaction:
            raise self.unsupported("results_by_transaction", version)
        if version <= 3:
            out.array_length(len(self.results_by_topic_v3_and_below))
            for add_partitions_to_txn_topic_result in self.results_by_topic_v3_and_below:
                add_partitions_to_txn_topic_result.encode(out, version)
        elif self.results_by_topic_v3_and_below:
            raise self.unsupported("results_by_topic_v3_and_below", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        if version >= 4:
            self.error_code = src.int16()
            self.results_by_transaction = src.structs(AddPartitionsToTxnResult, version)
        else:
            self.error_code = 0
            self.results_by_transaction = []
        self.results_by_topic_v3_and_below = src.structs(AddPartitionsToTxnTopicResult, version) if version <= 3 else []
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class AddPartitionsToTxnTopic(Struct):
    """Stands in `AddPartitionsToTxnTransaction.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class AddPartitionsToTxnTransaction(Struct):
    """Stands in `AddPartitionsToTxnRequest.transactions`."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.verify_only: bool = verify_only
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.transactional_id)
        out.int64(self.producer_id)
        out.int16(self.producer_epoch)
        out.boolean(self.verify_only)
        out.array_length(len(self.topics))
        for add_partitions_to_txn_topic in self.topics:
            add_partitions_to_txn_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactional_id = src.string()
        self.producer_id = src.int64()
        self.producer_epoch = src.int16()
        self.verify_only = src.boolean()
        self.topics = src.structs(AddPartitionsToTxnTopic, version)
        self.unknown_tags = src.tags()
        return self


class AddPartitionsToTxnRequest(Request[AddPartitionsToTxnResponse]):
    """Answered by `AddPartitionsToTxnResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ADD_PARTITIONS_TO_TXN
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 5, flexible=3)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[AddPartitionsToTxnResponse]] = AddPartitionsToTxnResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "transactions": 4,
        "transactional_id": 4,
        "producer_id": 4,
        "producer_epoch": 4,
        "verify_only": 4,
        "topics": 4,
    }
    __slots__ = (
        "transactions",
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] = EMPTY,  # v4+
        v3_and_below_transactional_id: str = "",  # v0-3
        v3_and_below_producer_id: int = 0,  # v0-3
        v3_and_below_producer_epoch: int = 0,  # v0-3
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = EMPTY,  # v0-3
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is EMPTY else transactions
        self.v3_and_below_transactional_id: str = v3_and_below_transactional_id
        self.v3_and_below_producer_id: int = v3_and_below_producer_id
        self.v3_and_below_producer_epoch: int = v3_and_below_producer_epoch
        self.v3_and_below_topics: list[AddPartitionsToTxnTopic] = (
            [] if v3_and_below_topics is EMPTY else v3_and_below_topics
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 4:
            out.array_length(len(self.transactions))
            for add_partitions_to_txn_transaction in self.transactions:
                add_partitions_to_txn_transaction.encode(out, version)
        elif self.transactions:
            raise self.unsupported("transactions", version)
        if version <= 3:
            out.string(self.v3_and_below_transactional_id)
            out.int64(self.v3_and_below_producer_id)
            out.int16(self.v3_and_below_producer_epoch)
            out.array_length(len(self.v3_and_below_topics))
            for add_partitions_to_txn_topic in self.v3_and_below_topics:
                add_partitions_to_txn_topic.encode(out, version)
        elif self.v3_and_below_transactional_id:
            raise self.unsupported("v3_and_below_transactional_id", version)
        elif self.v3_and_below_producer_id != 0:
            raise self.unsupported("v3_and_below_producer_id", version)
        elif self.v3_and_below_producer_epoch != 0:
            raise self.unsupported("v3_and_below_producer_epoch", version)
        elif self.v3_and_below_topics:
            raise self.unsupported("v3_and_below_topics", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactions = src.structs(AddPartitionsToTxnTransaction, version) if version >= 4 else []
        if version <= 3:
            self.v3_and_below_transactional_id = src.string()
            self.v3_and_below_producer_id = src.int64()
            self.v3_and_below_producer_epoch = src.int16()
            self.v3_and_below_topics = src.structs(AddPartitionsToTxnTopic, version)
        else:
            self.v3_and_below_transactional_id = ""
            self.v3_and_below_producer_id = 0
            self.v3_and_below_producer_epoch = 0
            self.v3_and_below_topics = []
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.v3_and_below_transactional_id or next((entry.transactional_id for entry in self.transactions), "")
