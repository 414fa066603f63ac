"""Metadata (key 3), versions 0-13, flexible from 9.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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


class MetadataResponseBroker(Struct):
    """Stands in `MetadataResponse.brokers`."""

    __slots__ = ("node_id", "host", "port", "rack", "unknown_tags")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,  # v1+
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
        if version >= 1:
            out.nullable_string(self.rack)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.node_id = src.int32()
        self.host = src.string()
        self.port = src.int32()
        self.rack = src.nullable_string() if version >= 1 else None
        self.unknown_tags = src.tags()
        return self


class MetadataResponsePartition(Struct):
    """Stands in `MetadataResponseTopic.partitions`."""

    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,  # v7+
        replica_nodes: list[int] = EMPTY,
        isr_nodes: list[int] = EMPTY,
        offline_replicas: list[int] = EMPTY,  # v5+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is EMPTY else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is EMPTY else isr_nodes
        self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.int32(self.partition_index)
        out.int32(self.leader_id)
        if version >= 7:
            out.int32(self.leader_epoch)
        out.int32s(self.replica_nodes)
        out.int32s(self.isr_nodes)
        if version >= 5:
            out.int32s(self.offline_replicas)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.partition_index = src.int32()
        self.leader_id = src.int32()
        self.leader_epoch = src.int32() if version >= 7 else -1
        self.replica_nodes = src.int32s()
        self.isr_nodes = src.int32s()
        self.offline_replicas = src.int32s() if version >= 5 else []
        self.unknown_tags = src.tags()
        return self


class MetadataResponseTopic(Struct):
    """Stands in `MetadataResponse.topics`."""

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
        topic_id: bytes = ZERO_UUID,  # v10+
        is_internal: bool = False,  # v1+
        partitions: list[MetadataResponsePartition] = EMPTY,
        topic_authorized_operations: int = -2147483648,  # v8+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[MetadataResponsePartition] = [] if partitions is EMPTY else partitions
        self.topic_authorized_operations: int = topic_authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        if self.name is None and version < 12:
            raise self.unsupported("name", version)
        out.nullable_string(self.name)
        if version >= 10:
            out.uuid(self.topic_id)
        if version >= 1:
            out.boolean(self.is_internal)
        out.array_length(len(self.partitions))
        for metadata_response_partition in self.partitions:
            metadata_response_partition.encode(out, version)
        if version >= 8:
            out.int32(self.topic_authorized_operations)
        elif self.topic_authorized_operations != -2147483648:
            raise self.unsupported("topic_authorized_operations", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.name = src.nullable_string() if version >= 12 else src.string()
        self.topic_id = src.uuid() if version >= 10 else ZERO_UUID
        self.is_internal = src.boolean() if version >= 1 else False
        self.partitions = src.structs(MetadataResponsePartition, version)
        self.topic_authorized_operations = src.int32() if version >= 8 else -2147483648
        self.unknown_tags = src.tags()
        return self


class MetadataResponse(Response):
    """Answers `MetadataRequest`."""

    API: ClassVar[ApiKey] = ApiKey.METADATA
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 13, flexible=9)
    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v3+
        brokers: list[MetadataResponseBroker] = EMPTY,
        cluster_id: str | None = None,  # v2+
        controller_id: int = -1,  # v1+
        topics: list[MetadataResponseTopic] = EMPTY,
        cluster_authorized_operations: int = -2147483648,  # v8-10
        error_code: int = 0,  # v13+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.brokers: list[MetadataResponseBroker] = [] if brokers is EMPTY else brokers
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.topics: list[MetadataResponseTopic] = [] if topics is EMPTY else topics
        self.cluster_authorized_operations: int = cluster_authorized_operations
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 3:
            out.int32(self.throttle_time_ms)
        out.array_length(len(self.brokers))
        for metadata_response_broker in self.brokers:
            metadata_response_broker.encode(out, version)
        if version >= 2:
            out.nullable_string(self.cluster_id)
        if version >= 1:
            out.int32(self.controller_id)
        out.array_length(len(self.topics))
        for metadata_response_topic in self.topics:
            metadata_response_topic.encode(out, version)
        if 8 <= version <= 10:
            out.int32(self.cluster_authorized_operations)
        elif self.cluster_authorized_operations != -2147483648:
            raise self.unsupported("cluster_authorized_operations", version)
        if version >= 13:
            out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 3 else 0
        self.brokers = src.structs(MetadataResponseBroker, version)
        self.cluster_id = src.nullable_string() if version >= 2 else None
        self.controller_id = src.int32() if version >= 1 else -1
        self.topics = src.structs(MetadataResponseTopic, version)
        self.cluster_authorized_operations = src.int32() if 8 <= version <= 10 else -2147483648
        self.error_code = src.int16() if version >= 13 else 0
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.topics:
            yield entry.error_code


class MetadataRequestTopic(Struct):
    """Stands in `MetadataRequest.topics`."""

    __slots__ = ("topic_id", "name", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,  # v10+
        name: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.name: str | None = name
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 10:
            out.uuid(self.topic_id)
        if self.name is None and version < 10:
            raise self.unsupported("name", version)
        out.nullable_string(self.name)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid() if version >= 10 else ZERO_UUID
        self.name = src.nullable_string() if version >= 10 else src.string()
        self.unknown_tags = src.tags()
        return self


class MetadataRequest(Request[MetadataResponse]):
    """Answered by `MetadataResponse`."""

    API: ClassVar[ApiKey] = ApiKey.METADATA
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 13, flexible=9)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[MetadataResponse]] = MetadataResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "topic_id": 10,
        "allow_auto_topic_creation": 4,
        "include_cluster_authorized_operations": 8,
        "include_topic_authorized_operations": 8,
    }
    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        topics: list[MetadataRequestTopic] | None = EMPTY,
        allow_auto_topic_creation: bool = True,  # v4+
        include_cluster_authorized_operations: bool = False,  # v8-10
        include_topic_authorized_operations: bool = False,  # v8+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[MetadataRequestTopic] | None = [] if topics is EMPTY else topics
        self.allow_auto_topic_creation: bool = allow_auto_topic_creation
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.include_topic_authorized_operations: bool = include_topic_authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if self.topics is None and version < 1:
            raise self.unsupported("topics", version)
        out.nullable_array_length(-1 if self.topics is None else len(self.topics))
        for metadata_request_topic in self.topics or ():
            metadata_request_topic.encode(out, version)
        if version >= 4:
            out.boolean(self.allow_auto_topic_creation)
        elif not self.allow_auto_topic_creation:
            raise self.unsupported("allow_auto_topic_creation", version)
        if 8 <= version <= 10:
            out.boolean(self.include_cluster_authorized_operations)
        elif self.include_cluster_authorized_operations:
            raise self.unsupported("include_cluster_authorized_operations", version)
        if version >= 8:
            out.boolean(self.include_topic_authorized_operations)
        elif self.include_topic_authorized_operations:
            raise self.unsupported("include_topic_authorized_operations", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = (
            src.nullable_structs(MetadataRequestTopic, version)
            if version >= 1
            else src.structs(MetadataRequestTopic, version)
        )
        self.allow_auto_topic_creation = src.boolean() if version >= 4 else True
        self.include_cluster_authorized_operations = src.boolean() if 8 <= version <= 10 else False
        self.include_topic_authorized_operations = src.boolean() if version >= 8 else False
        self.unknown_tags = src.tags()
        return self
