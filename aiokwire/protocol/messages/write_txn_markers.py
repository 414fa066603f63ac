"""WriteTxnMarkers (key 27), versions 0-2, flexible from 1.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
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


class WritableTxnMarkerPartitionResult(Struct):
    """Stands in `WritableTxnMarkerTopicResult.partitions`."""

    __slots__ = ("partition_index", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class WritableTxnMarkerTopicResult(Struct):
    """Stands in `WritableTxnMarkerResult.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[WritableTxnMarkerPartitionResult] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for writable_txn_marker_partition_result in self.partitions:
            writable_txn_marker_partition_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(WritableTxnMarkerPartitionResult, version)
        self.unknown_tags = src.tags()
        return self


class WritableTxnMarkerResult(Struct):
    """Stands in `WriteTxnMarkersResponse.markers`."""

    __slots__ = ("producer_id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.producer_id: int = producer_id
        self.topics: list[WritableTxnMarkerTopicResult] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int64(self.producer_id)
        out.array_length(len(self.topics))
        for writable_txn_marker_topic_result in self.topics:
            writable_txn_marker_topic_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.producer_id = src.int64()
        self.topics = src.structs(WritableTxnMarkerTopicResult, version)
        self.unknown_tags = src.tags()
        return self


class WriteTxnMarkersResponse(Response):
    """Answers `WriteTxnMarkersRequest`."""

    API: ClassVar[ApiKey] = ApiKey.WRITE_TXN_MARKERS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=1)
    __slots__ = ("markers", "unknown_tags")

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarkerResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.markers: list[WritableTxnMarkerResult] = [] if markers is EMPTY else markers
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.markers))
        for writable_txn_marker_result in self.markers:
            writable_txn_marker_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.markers = src.structs(WritableTxnMarkerResult, version)
        self.unknown_tags = src.tags()
        return self


class WritableTxnMarkerTopic(Struct):
    """Stands in `WritableTxnMarker.topics`."""

    __slots__ = ("name", "partition_indexes", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int32s(self.partition_indexes)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partition_indexes = src.int32s()
        self.unknown_tags = src.tags()
        return self


class WritableTxnMarker(Struct):
    """Stands in `WriteTxnMarkersRequest.markers`."""

    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = EMPTY,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,  # v2+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.transaction_result: bool = transaction_result
        self.topics: list[WritableTxnMarkerTopic] = [] if topics is EMPTY else topics
        self.coordinator_epoch: int = coordinator_epoch
        self.transaction_version: int = transaction_version
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int64(self.producer_id)
        out.int16(self.producer_epoch)
        out.boolean(self.transaction_result)
        out.array_length(len(self.topics))
        for writable_txn_marker_topic in self.topics:
            writable_txn_marker_topic.encode(out, version)
        out.int32(self.coordinator_epoch)
        if version >= 2:
            out.int8(self.transaction_version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.producer_id = src.int64()
        self.producer_epoch = src.int16()
        self.transaction_result = src.boolean()
        self.topics = src.structs(WritableTxnMarkerTopic, version)
        self.coordinator_epoch = src.int32()
        self.transaction_version = src.int8() if version >= 2 else 0
        self.unknown_tags = src.tags()
        return self


class WriteTxnMarkersRequest(Request[WriteTxnMarkersResponse]):
    """Answered by `WriteTxnMarkersResponse`."""

    API: ClassVar[ApiKey] = ApiKey.WRITE_TXN_MARKERS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=1)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[WriteTxnMarkersResponse]] = WriteTxnMarkersResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"transaction_version": 2}
    __slots__ = ("markers", "unknown_tags")

    def __init__(
        self,
        *,
        markers: list[WritableTxnMarker] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.markers: list[WritableTxnMarker] = [] if markers is EMPTY else markers
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.markers))
        for writable_txn_marker in self.markers:
            writable_txn_marker.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.markers = src.structs(WritableTxnMarker, version)
        self.unknown_tags = src.tags()
        return self
