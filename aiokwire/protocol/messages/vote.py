"""Vote (key 52), versions 0-2, flexible from 0.

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


class VoteResponsePartitionData(Struct):
    """Stands in `VoteResponseTopicData.partitions`."""

    __slots__ = ("partition_index", "error_code", "leader_id", "leader_epoch", "vote_granted", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        vote_granted: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.vote_granted: bool = vote_granted
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        out.boolean(self.vote_granted)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.vote_granted = src.boolean()
        self.unknown_tags = src.tags()
        return self


class VoteResponseTopicData(Struct):
    """Stands in `VoteResponse.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteResponsePartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[VoteResponsePartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for vote_response_partition_data in self.partitions:
            vote_response_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(VoteResponsePartitionData, version)
        self.unknown_tags = src.tags()
        return self


class NodeEndpoint(Struct):
    """Stands in `VoteResponse.node_endpoints`."""

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


class VoteResponse(Response):
    """Answers `VoteRequest`."""

    API: ClassVar[ApiKey] = ApiKey.VOTE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    __slots__ = ("error_code", "topics", "node_endpoints", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        topics: list[VoteResponseTopicData] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # v1+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.topics: list[VoteResponseTopicData] = [] if topics is EMPTY else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.array_length(len(self.topics))
        for vote_response_topic_data in self.topics:
            vote_response_topic_data.encode(out, version)
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
        self.topics = src.structs(VoteResponseTopicData, version)
        self.node_endpoints = []
        unknown = []
        for tag, field in src.tagged():
            if tag == 0 and version >= 1:
                self.node_endpoints = field.structs(NodeEndpoint, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class VoteRequestPartitionData(Struct):
    """Stands in `VoteRequestTopicData.partitions`."""

    __slots__ = (
        "partition_index",
        "replica_epoch",
        "replica_id",
        "replica_directory_id",
        "voter_directory_id",
        "last_offset_epoch",
        "last_offset",
        "pre_vote",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,  # v1+
        voter_directory_id: bytes = ZERO_UUID,  # v1+
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,  # v2+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.replica_epoch: int = replica_epoch
        self.replica_id: int = replica_id
        self.replica_directory_id: bytes = replica_directory_id
        self.voter_directory_id: bytes = voter_directory_id
        self.last_offset_epoch: int = last_offset_epoch
        self.last_offset: int = last_offset
        self.pre_vote: bool = pre_vote
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int32(self.replica_epoch)
        out.int32(self.replica_id)
        if version >= 1:
            out.uuid(self.replica_directory_id)
            out.uuid(self.voter_directory_id)
        out.int32(self.last_offset_epoch)
        out.int64(self.last_offset)
        if version >= 2:
            out.boolean(self.pre_vote)
        elif self.pre_vote:
            raise self.unsupported("pre_vote", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.replica_epoch = src.int32()
        self.replica_id = src.int32()
        if version >= 1:
            self.replica_directory_id = src.uuid()
            self.voter_directory_id = src.uuid()
        else:
            self.replica_directory_id = ZERO_UUID
            self.voter_directory_id = ZERO_UUID
        self.last_offset_epoch = src.int32()
        self.last_offset = src.int64()
        self.pre_vote = src.boolean() if version >= 2 else False
        self.unknown_tags = src.tags()
        return self


class VoteRequestTopicData(Struct):
    """Stands in `VoteRequest.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[VoteRequestPartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[VoteRequestPartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for vote_request_partition_data in self.partitions:
            vote_request_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(VoteRequestPartitionData, version)
        self.unknown_tags = src.tags()
        return self


class VoteRequest(Request[VoteResponse]):
    """Answered by `VoteResponse`."""

    API: ClassVar[ApiKey] = ApiKey.VOTE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[VoteResponse]] = VoteResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "voter_id": 1,
        "replica_directory_id": 1,
        "voter_directory_id": 1,
        "pre_vote": 2,
    }
    __slots__ = ("cluster_id", "voter_id", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        voter_id: int = -1,  # v1+
        topics: list[VoteRequestTopicData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: list[VoteRequestTopicData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.nullable_string(self.cluster_id)
        if version >= 1:
            out.int32(self.voter_id)
        out.array_length(len(self.topics))
        for vote_request_topic_data in self.topics:
            vote_request_topic_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.cluster_id = src.nullable_string()
        self.voter_id = src.int32() if version >= 1 else -1
        self.topics = src.structs(VoteRequestTopicData, version)
        self.unknown_tags = src.tags()
        return self
