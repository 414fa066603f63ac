"""EndQuorumEpoch (key 54), versions 0-1, flexible from 1.

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


class EndQuorumEpochResponsePartitionData(Struct):
    """Stands in `EndQuorumEpochResponseTopicData.partitions`."""

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


class EndQuorumEpochResponseTopicData(Struct):
    """Stands in `EndQuorumEpochResponse.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[EndQuorumEpochResponsePartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[EndQuorumEpochResponsePartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for end_quorum_epoch_response_partition_data in self.partitions:
            end_quorum_epoch_response_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(EndQuorumEpochResponsePartitionData, version)
        self.unknown_tags = src.tags()
        return self


class NodeEndpoint(Struct):
    """Stands in `EndQuorumEpochResponse.node_endpoints`."""

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


class EndQuorumEpochResponse(Response):
    """Answers `EndQuorumEpochRequest`."""

    API: ClassVar[ApiKey] = ApiKey.END_QUORUM_EPOCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=1)
    __slots__ = ("error_code", "topics", "node_endpoints", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[EndQuorumEpochResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # v1+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[EndQuorumEpochResponseTopicData] = [] if topics is EMPTY else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.array_length(len(self.topics))
        for end_quorum_epoch_response_topic_data in self.topics:
            end_quorum_epoch_response_topic_data.encode(out, version)
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
        self.topics = src.structs(EndQuorumEpochResponseTopicData, version)
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


class ReplicaInfo(Struct):
    """Stands in `EndQuorumEpochRequestPartitionData.preferred_candidates`."""

    __slots__ = ("candidate_id", "candidate_directory_id", "unknown_tags")

    def __init__(
        self,
        *,
        candidate_id: int = 0,
        candidate_directory_id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.candidate_id: int = candidate_id
        self.candidate_directory_id: bytes = candidate_directory_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.candidate_id)
        out.uuid(self.candidate_directory_id)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.candidate_id = src.int32()
        self.candidate_directory_id = src.uuid()
        self.unknown_tags = src.tags()
        return self


class EndQuorumEpochRequestPartitionData(Struct):
    """Stands in `EndQuorumEpochRequestTopicData.partitions`."""

    __slots__ = (
        "partition_index",
        "leader_id",
        "leader_epoch",
        "preferred_successors",
        "preferred_candidates",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        preferred_successors: list[int] = EMPTY,  # v0
        preferred_candidates: list[ReplicaInfo] = EMPTY,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.preferred_successors: list[int] = [] if preferred_successors is EMPTY else preferred_successors
        self.preferred_candidates: list[ReplicaInfo] = [] if preferred_candidates is EMPTY else preferred_candidates
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        if version <= 0:
            out.int32s(self.preferred_successors)
        if version >= 1:
            out.array_length(len(self.preferred_candidates))
            for replica_info in self.preferred_candidates:
                replica_info.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.preferred_successors = src.int32s() if version <= 0 else []
        self.preferred_candidates = src.structs(ReplicaInfo, version) if version >= 1 else []
        self.unknown_tags = src.tags()
        return self


class EndQuorumEpochRequestTopicData(Struct):
    """Stands in `EndQuorumEpochRequest.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[EndQuorumEpochRequestPartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[EndQuorumEpochRequestPartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for end_quorum_epoch_request_partition_data in self.partitions:
            end_quorum_epoch_request_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(EndQuorumEpochRequestPartitionData, version)
        self.unknown_tags = src.tags()
        return self


class LeaderEndpoint(Struct):
    """Stands in `EndQuorumEpochRequest.leader_endpoints`."""

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


class EndQuorumEpochRequest(Request[EndQuorumEpochResponse]):
    """Answered by `EndQuorumEpochResponse`."""

    API: ClassVar[ApiKey] = ApiKey.END_QUORUM_EPOCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=1)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[EndQuorumEpochResponse]] = EndQuorumEpochResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "preferred_candidates": 1,
        "candidate_id": 1,
        "candidate_directory_id": 1,
        "leader_endpoints": 1,
        "name": 1,
        "host": 1,
        "port": 1,
    }
    __slots__ = ("cluster_id", "topics", "leader_endpoints", "unknown_tags")

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        topics: list[EndQuorumEpochRequestTopicData] = EMPTY,
        leader_endpoints: list[LeaderEndpoint] = EMPTY,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.topics: list[EndQuorumEpochRequestTopicData] = [] if topics is EMPTY else topics
        self.leader_endpoints: list[LeaderEndpoint] = [] if leader_endpoints is EMPTY else leader_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_string(self.cluster_id)
        out.array_length(len(self.topics))
        for end_quorum_epoch_request_topic_data in self.topics:
            end_quorum_epoch_request_topic_data.encode(out, version)
        if version >= 1:
            out.array_length(len(self.leader_endpoints))
            for leader_endpoint in self.leader_endpoints:
                leader_endpoint.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.cluster_id = src.nullable_string()
        self.topics = src.structs(EndQuorumEpochRequestTopicData, version)
        self.leader_endpoints = src.structs(LeaderEndpoint, version) if version >= 1 else []
        self.unknown_tags = src.tags()
        return self
