"""DescribeTopicPartitions (key 75), versions 0, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    ZERO_UUID,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class DescribeTopicPartitionsResponsePartition(Struct):
    """Stands in `DescribeTopicPartitionsResponseTopic.partitions`."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.int32(self.partition_index)
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        out.int32s(self.replica_nodes)
        out.int32s(self.isr_nodes)
        out.nullable_int32s(self.eligible_leader_replicas)
        out.nullable_int32s(self.last_known_elr)
        out.int32s(self.offline_replicas)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.partition_index = src.int32()
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.replica_nodes = src.int32s()
        self.isr_nodes = src.int32s()
        self.eligible_leader_replicas = src.nullable_int32s()
        self.last_known_elr = src.nullable_int32s()
        self.offline_replicas = src.int32s()
        self.unknown_tags = src.tags()
        return self


class DescribeTopicPartitionsResponseTopic(Struct):
    """Stands in `DescribeTopicPartitionsResponse.topics`."""

    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[DescribeTopicPartitionsResponsePartition] = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations: int = topic_authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.nullable_string(self.name)
        out.uuid(self.topic_id)
        out.boolean(self.is_internal)
        out.array_length(len(self.partitions))
        for describe_topic_partitions_response_partition in self.partitions:
            describe_topic_partitions_response_partition.encode(out, version)
        out.int32(self.topic_authorized_operations)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.name = src.nullable_string()
        self.topic_id = src.uuid()
        self.is_internal = src.boolean()
        self.partitions = src.structs(DescribeTopicPartitionsResponsePartition, version)
        self.topic_authorized_operations = src.int32()
        self.unknown_tags = src.tags()
        return self


class Cursor(Struct):
    """Stands in `DescribeTopicPartitionsResponse.next_cursor`."""

    __slots__ = ("topic_name", "partition_index", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.int32(self.partition_index)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partition_index = src.int32()
        self.unknown_tags = src.tags()
        return self


class DescribeTopicPartitionsResponse(Response):
    """Answers `DescribeTopicPartitionsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "topics", "next_cursor", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = EMPTY,
        next_cursor: Cursor | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribeTopicPartitionsResponseTopic] = [] if topics is EMPTY else topics
        self.next_cursor: Cursor | None = next_cursor
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for describe_topic_partitions_response_topic in self.topics:
            describe_topic_partitions_response_topic.encode(out, version)
        out.present(self.next_cursor is not None)
        if self.next_cursor is not None:
            self.next_cursor.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.topics = src.structs(DescribeTopicPartitionsResponseTopic, version)
        self.next_cursor = Cursor.decode(src, version) if src.present() else None
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.topics:
            yield entry.error_code


class TopicRequest(Struct):
    """Stands in `DescribeTopicPartitionsRequest.topics`."""

    __slots__ = ("name", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.unknown_tags = src.tags()
        return self


class DescribeTopicPartitionsRequest(Request[DescribeTopicPartitionsResponse]):
    """Answered by `DescribeTopicPartitionsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[DescribeTopicPartitionsResponse]] = DescribeTopicPartitionsResponse
    __slots__ = ("topics", "response_partition_limit", "cursor", "unknown_tags")

    def __init__(
        self,
        *,
        topics: list[TopicRequest] = EMPTY,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is EMPTY else topics
        self.response_partition_limit: int = response_partition_limit
        self.cursor: Cursor | None = cursor
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.topics))
        for topic_request in self.topics:
            topic_request.encode(out, version)
        out.int32(self.response_partition_limit)
        out.present(self.cursor is not None)
        if self.cursor is not None:
            self.cursor.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.structs(TopicRequest, version)
        self.response_partition_limit = src.int32()
        self.cursor = Cursor.decode(src, version) if src.present() else None
        self.unknown_tags = src.tags()
        return self
