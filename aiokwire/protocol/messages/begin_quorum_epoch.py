"""BeginQuorumEpoch (key 53), versions 0-1, flexible from 1.

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


class BeginQuorumEpochResponsePartitionData(Struct):
    """Stands in `BeginQuorumEpochResponseTopicData.partitions`."""

    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.unknown_tags = src.tags()
        return self


class BeginQuorumEpochResponseTopicData(Struct):
    """Stands in `BeginQuorumEpochResponse.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochResponsePartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[BeginQuorumEpochResponsePartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for begin_quorum_epoch_response_partition_data in self.partitions:
            begin_quorum_epoch_response_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(BeginQuorumEpochResponsePartitionData, version)
        self.unknown_tags = src.tags()
        return self


class NodeEndpoint(Struct):
    """Stands in `BeginQuorumEpochResponse.node_endpoints`."""

    __slots__ = ("node_id", "host", "port", "unknown_tags")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.node_id)
        out.string(self.host)
        out.uint16(self.port)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.node_id = src.int32()
        self.host = src.string()
        self.port = src.uint16()
        self.unknown_tags = src.tags()
        return self


class BeginQuorumEpochResponse(Response):
    """Answers `BeginQuorumEpochRequest`."""

    API: ClassVar[ApiKey] = ApiKey.BEGIN_QUORUM_EPOCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=1)
    __slots__ = ("error_code", "topics", "node_endpoints", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[BeginQuorumEpochResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # v1+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[BeginQuorumEpochResponseTopicData] = [] if topics is EMPTY else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.array_length(len(self.topics))
        for begin_quorum_epoch_response_topic_data in self.topics:
            begin_quorum_epoch_response_topic_data.encode(out, version)
        known: list[tuple[int, PlainWriter]] = []
        if self.node_endpoints:
            if version < 1:
                raise self.unsupported("node_endpoints", version)
            field = out.nested()
            field.array_length(len(self.node_endpoints))
            for node_endpoint in self.node_endpoints:
                node_endpoint.encode(field, version)
            known.append((0, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.topics = src.structs(BeginQuorumEpochResponseTopicData, version)
        self.node_endpoints = []
        unknown = []
        for tag, field in src.tagged():
            if tag == 0:
                self.node_endpoints = field.structs(NodeEndpoint, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class BeginQuorumEpochRequestPartitionData(Struct):
    """Stands in `BeginQuorumEpochRequestTopicData.partitions`."""

    __slots__ = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        voter_directory_id: bytes = ZERO_UUID,  # v1+
        leader_id: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.voter_directory_id: bytes = voter_directory_id
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        if version >= 1:
            out.uuid(self.voter_directory_id)
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.voter_directory_id = src.uuid() if version >= 1 else ZERO_UUID
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.unknown_tags = src.tags()
        return self


class BeginQuorumEpochRequestTopicData(Struct):
    """Stands in `BeginQuorumEpochRequest.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[BeginQuorumEpochRequestPartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[BeginQuorumEpochRequestPartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for begin_quorum_epoch_request_partition_data in self.partitions:
            begin_quorum_epoch_request_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(BeginQuorumEpochRequestPartitionData, version)
        self.unknown_tags = src.tags()
        return self


class LeaderEndpoint(Struct):
    """Stands in `BeginQuorumEpochRequest.leader_endpoints`."""

    __slots__ = ("name", "host", "port", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.string(self.host)
        out.uint16(self.port)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.host = src.string()
        self.port = src.uint16()
        self.unknown_tags = src.tags()
        return self


class BeginQuorumEpochRequest(Request[BeginQuorumEpochResponse]):
    """Answered by `BeginQuorumEpochResponse`."""

    API: ClassVar[ApiKey] = ApiKey.BEGIN_QUORUM_EPOCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=1)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[BeginQuorumEpochResponse]] = BeginQuorumEpochResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "voter_id": 1,
        "voter_directory_id": 1,
        "leader_endpoints": 1,
        "name": 1,
        "host": 1,
        "port": 1,
    }
    __slots__ = ("cluster_id", "voter_id", "topics", "leader_endpoints", "unknown_tags")

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,  # v1+
        topics: list[BeginQuorumEpochRequestTopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: list[BeginQuorumEpochRequestTopicData] = [] if topics is EMPTY else topics
        self.leader_endpoints: list[LeaderEndpoint] = [] if leader_endpoints is EMPTY else leader_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_string(self.cluster_id)
        if version >= 1:
            out.int32(self.voter_id)
        out.array_length(len(self.topics))
        for begin_quorum_epoch_request_topic_data in self.topics:
            begin_quorum_epoch_request_topic_data.encode(out, version)
        if version >= 1:
            out.array_length(len(self.leader_endpoints))
            for leader_endpoint in self.leader_endpoints:
                leader_endpoint.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.cluster_id = src.nullable_string()
        self.voter_id = src.int32() if version >= 1 else -1
        self.topics = src.structs(BeginQuorumEpochRequestTopicData, version)
        self.leader_endpoints = src.structs(LeaderEndpoint, version) if version >= 1 else []
        self.unknown_tags = src.tags()
        return self
