"""DescribeQuorum (key 55), versions 0-2, flexible from 0.

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


class ReplicaState(Struct):
    """Stands in `DescribeQuorumResponsePartitionData.current_voters`."""

    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,  # v2+
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,  # v1+
        last_caught_up_timestamp: int = -1,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_directory_id: bytes = replica_directory_id
        self.log_end_offset: int = log_end_offset
        self.last_fetch_timestamp: int = last_fetch_timestamp
        self.last_caught_up_timestamp: int = last_caught_up_timestamp
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.replica_id)
        if version >= 2:
            out.uuid(self.replica_directory_id)
        elif self.replica_directory_id != ZERO_UUID:
            raise self.unsupported("replica_directory_id", version)
        out.int64(self.log_end_offset)
        if version >= 1:
            out.int64(self.last_fetch_timestamp)
            out.int64(self.last_caught_up_timestamp)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.replica_id = src.int32()
        self.replica_directory_id = src.uuid() if version >= 2 else ZERO_UUID
        self.log_end_offset = src.int64()
        if version >= 1:
            self.last_fetch_timestamp = src.int64()
            self.last_caught_up_timestamp = src.int64()
        else:
            self.last_fetch_timestamp = -1
            self.last_caught_up_timestamp = -1
        self.unknown_tags = src.tags()
        return self


class DescribeQuorumResponsePartitionData(Struct):
    """Stands in `DescribeQuorumResponseTopicData.partitions`."""

    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",  # v2+
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = EMPTY,
        observers: list[ReplicaState] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.high_watermark: int = high_watermark
        self.current_voters: list[ReplicaState] = [] if current_voters is EMPTY else current_voters
        self.observers: list[ReplicaState] = [] if observers is EMPTY else observers
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        if version >= 2:
            out.nullable_string(self.error_message)
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        out.int64(self.high_watermark)
        out.array_length(len(self.current_voters))
        for replica_state in self.current_voters:
            replica_state.encode(out, version)
        out.array_length(len(self.observers))
        for replica_state in self.observers:
            replica_state.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string() if version >= 2 else ""
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.high_watermark = src.int64()
        self.current_voters = src.structs(ReplicaState, version)
        self.observers = src.structs(ReplicaState, version)
        self.unknown_tags = src.tags()
        return self


class DescribeQuorumResponseTopicData(Struct):
    """Stands in `DescribeQuorumResponse.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumResponsePartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[DescribeQuorumResponsePartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for describe_quorum_response_partition_data in self.partitions:
            describe_quorum_response_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(DescribeQuorumResponsePartitionData, version)
        self.unknown_tags = src.tags()
        return self


class Listener(Struct):
    """Stands in `Node.listeners`."""

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


class Node(Struct):
    """Stands in `DescribeQuorumResponse.nodes`."""

    __slots__ = ("node_id", "listeners", "unknown_tags")

    def __init__(
        self,
        *,
        node_id: int = 0,
        listeners: list[Listener] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.node_id: int = node_id
        self.listeners: list[Listener] = [] if listeners is EMPTY else listeners
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.node_id)
        out.array_length(len(self.listeners))
        for listener in self.listeners:
            listener.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.node_id = src.int32()
        self.listeners = src.structs(Listener, version)
        self.unknown_tags = src.tags()
        return self


class DescribeQuorumResponse(Response):
    """Answers `DescribeQuorumRequest`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_QUORUM
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    __slots__ = ("error_code", "error_message", "topics", "nodes", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",  # v2+
        topics: list[DescribeQuorumResponseTopicData] = EMPTY,
        nodes: list[Node] = EMPTY,  # v2+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[DescribeQuorumResponseTopicData] = [] if topics is EMPTY else topics
        self.nodes: list[Node] = [] if nodes is EMPTY else nodes
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        if version >= 2:
            out.nullable_string(self.error_message)
        out.array_length(len(self.topics))
        for describe_quorum_response_topic_data in self.topics:
            describe_quorum_response_topic_data.encode(out, version)
        if version >= 2:
            out.array_length(len(self.nodes))
            for node in self.nodes:
                node.encode(out, version)
        elif self.nodes:
            raise self.unsupported("nodes", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string() if version >= 2 else ""
        self.topics = src.structs(DescribeQuorumResponseTopicData, version)
        self.nodes = src.structs(Node, version) if version >= 2 else []
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class DescribeQuorumRequestPartitionData(Struct):
    """Stands in `DescribeQuorumRequestTopicData.partitions`."""

    __slots__ = ("partition_index", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.unknown_tags = src.tags()
        return self


class DescribeQuorumRequestTopicData(Struct):
    """Stands in `DescribeQuorumRequest.topics`."""

    __slots__ = ("topic_name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: list[DescribeQuorumRequestPartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[DescribeQuorumRequestPartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partitions))
        for describe_quorum_request_partition_data in self.partitions:
            describe_quorum_request_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partitions = src.structs(DescribeQuorumRequestPartitionData, version)
        self.unknown_tags = src.tags()
        return self


class DescribeQuorumRequest(Request[DescribeQuorumResponse]):
    """Answered by `DescribeQuorumResponse`."""

    API: ClassVar[ApiKey] = ApiKey.DESCRIBE_QUORUM
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 2, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[DescribeQuorumResponse]] = DescribeQuorumResponse
    __slots__ = ("topics", "unknown_tags")

    def __init__(
        self,
        *,
        topics: list[DescribeQuorumRequestTopicData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[DescribeQuorumRequestTopicData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.topics))
        for describe_quorum_request_topic_data in self.topics:
            describe_quorum_request_topic_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.structs(DescribeQuorumRequestTopicData, version)
        self.unknown_tags = src.tags()
        return self
