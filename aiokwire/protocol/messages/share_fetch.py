"""ShareFetch (key 78), versions 1-2, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    ZERO_UUID,
    Buffer,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class LeaderIdAndEpoch(Struct):
    """Stands in `PartitionData.current_leader`."""

    __slots__ = ("leader_id", "leader_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        leader_id: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.unknown_tags = src.tags()
        return self


class AcquiredRecords(Struct):
    """Stands in `PartitionData.acquired_records`."""

    __slots__ = ("first_offset", "last_offset", "delivery_count", "unknown_tags")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_count: int = delivery_count
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int64(self.first_offset)
        out.int64(self.last_offset)
        out.int16(self.delivery_count)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.first_offset = src.int64()
        self.last_offset = src.int64()
        self.delivery_count = src.int16()
        self.unknown_tags = src.tags()
        return self


class PartitionData(Struct):
    """Stands in `ShareFetchableTopicResponse.partitions`."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "acknowledge_error_code",
        "acknowledge_error_message",
        "current_leader",
        "records",
        "acquired_records",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        records: Buffer = b"",
        acquired_records: list[AcquiredRecords] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acknowledge_error_code: int = acknowledge_error_code
        self.acknowledge_error_message: str | None = acknowledge_error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.records: Buffer = records
        self.acquired_records: list[AcquiredRecords] = [] if acquired_records is EMPTY else acquired_records
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.int16(self.acknowledge_error_code)
        out.nullable_string(self.acknowledge_error_message)
        self.current_leader.encode(out, version)
        out.records(self.records)
        out.array_length(len(self.acquired_records))
        for acquired_records in self.acquired_records:
            acquired_records.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.acknowledge_error_code = src.int16()
        self.acknowledge_error_message = src.nullable_string()
        self.current_leader = LeaderIdAndEpoch.decode(src, version)
        self.records = src.records()
        self.acquired_records = src.structs(AcquiredRecords, version)
        self.unknown_tags = src.tags()
        return self


class ShareFetchableTopicResponse(Struct):
    """Stands in `ShareFetchResponse.responses`."""

    __slots__ = ("topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for partition_data in self.partitions:
            partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partitions = src.structs(PartitionData, version)
        self.unknown_tags = src.tags()
        return self


class NodeEndpoint(Struct):
    """Stands in `ShareFetchResponse.node_endpoints`."""

    __slots__ = ("node_id", "host", "port", "rack", "unknown_tags")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.node_id)
        out.string(self.host)
        out.int32(self.port)
        out.nullable_string(self.rack)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.node_id = src.int32()
        self.host = src.string()
        self.port = src.int32()
        self.rack = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class ShareFetchResponse(Response):
    """Answers `ShareFetchRequest`."""

    API: ClassVar[ApiKey] = ApiKey.SHARE_FETCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(1, 2, flexible=0)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: list[ShareFetchableTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.int32(self.acquisition_lock_timeout_ms)
        out.array_length(len(self.responses))
        for share_fetchable_topic_response in self.responses:
            share_fetchable_topic_response.encode(out, version)
        out.array_length(len(self.node_endpoints))
        for node_endpoint in self.node_endpoints:
            node_endpoint.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.acquisition_lock_timeout_ms = src.int32()
        self.responses = src.structs(ShareFetchableTopicResponse, version)
        self.node_endpoints = src.structs(NodeEndpoint, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class AcknowledgementBatch(Struct):
    """Stands in `FetchPartition.acknowledgement_batches`."""

    __slots__ = ("first_offset", "last_offset", "acknowledge_types", "unknown_tags")

    def __init__(
        self,
        *,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.acknowledge_types: list[int] = [] if acknowledge_types is EMPTY else acknowledge_types
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int64(self.first_offset)
        out.int64(self.last_offset)
        out.int8s(self.acknowledge_types)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.first_offset = src.int64()
        self.last_offset = src.int64()
        self.acknowledge_types = src.int8s()
        self.unknown_tags = src.tags()
        return self


class FetchPartition(Struct):
    """Stands in `FetchTopic.partitions`."""

    __slots__ = ("partition_index", "acknowledgement_batches", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.acknowledgement_batches: list[AcknowledgementBatch] = (
            [] if acknowledgement_batches is EMPTY else acknowledgement_batches
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.array_length(len(self.acknowledgement_batches))
        for acknowledgement_batch in self.acknowledgement_batches:
            acknowledgement_batch.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.acknowledgement_batches = src.structs(AcknowledgementBatch, version)
        self.unknown_tags = src.tags()
        return self


class FetchTopic(Struct):
    """Stands in `ShareFetchRequest.topics`."""

    __slots__ = ("topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for fetch_partition in self.partitions:
            fetch_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partitions = src.structs(FetchPartition, version)
        self.unknown_tags = src.tags()
        return self


class ForgottenTopic(Struct):
    """Stands in `ShareFetchRequest.forgotten_topics_data`."""

    __slots__ = ("topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class ShareFetchRequest(Request[ShareFetchResponse]):
    """Answered by `ShareFetchResponse`."""

    API: ClassVar[ApiKey] = ApiKey.SHARE_FETCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(1, 2, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ShareFetchResponse]] = ShareFetchResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"share_acquire_mode": 2, "is_renew_ack": 2}
    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,  # v2+
        is_renew_ack: bool = False,  # v2+
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.max_records: int = max_records
        self.batch_size: int = batch_size
        self.share_acquire_mode: int = share_acquire_mode
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[FetchTopic] = [] if topics is EMPTY else topics
        self.forgotten_topics_data: list[ForgottenTopic] = (
            [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_string(self.group_id)
        out.nullable_string(self.member_id)
        out.int32(self.share_session_epoch)
        out.int32(self.max_wait_ms)
        out.int32(self.min_bytes)
        out.int32(self.max_bytes)
        out.int32(self.max_records)
        out.int32(self.batch_size)
        if version >= 2:
            out.int8(self.share_acquire_mode)
            out.boolean(self.is_renew_ack)
        elif self.is_renew_ack:
            raise self.unsupported("is_renew_ack", version)
        out.array_length(len(self.topics))
        for fetch_topic in self.topics:
            fetch_topic.encode(out, version)
        out.array_length(len(self.forgotten_topics_data))
        for forgotten_topic in self.forgotten_topics_data:
            forgotten_topic.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.nullable_string()
        self.member_id = src.nullable_string()
        self.share_session_epoch = src.int32()
        self.max_wait_ms = src.int32()
        self.min_bytes = src.int32()
        self.max_bytes = src.int32()
        self.max_records = src.int32()
        self.batch_size = src.int32()
        if version >= 2:
            self.share_acquire_mode = src.int8()
            self.is_renew_ack = src.boolean()
        else:
            self.share_acquire_mode = 0
            self.is_renew_ack = False
        self.topics = src.structs(FetchTopic, version)
        self.forgotten_topics_data = src.structs(ForgottenTopic, version)
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.max_wait_ms, 0)
