"""FetchSnapshot (key 59), versions 0-1, flexible from 0.

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


class SnapshotId(Struct):
    """Stands in `FetchSnapshotResponsePartitionSnapshot.snapshot_id`."""

    __slots__ = ("end_offset", "epoch", "unknown_tags")

    def __init__(
        self,
        *,
        end_offset: int = 0,
        epoch: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int64(self.end_offset)
        out.int32(self.epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.end_offset = src.int64()
        self.epoch = src.int32()
        self.unknown_tags = src.tags()
        return self


class LeaderIdAndEpoch(Struct):
    """Stands in `FetchSnapshotResponsePartitionSnapshot.current_leader`."""

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


class FetchSnapshotResponsePartitionSnapshot(Struct):
    """Stands in `FetchSnapshotResponseTopicSnapshot.partitions`."""

    __slots__ = (
        "index",
        "error_code",
        "snapshot_id",
        "size",
        "position",
        "unaligned_records",
        "current_leader",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: SnapshotId | None = None,
        size: int = 0,
        position: int = 0,
        unaligned_records: Buffer = b"",
        current_leader: LeaderIdAndEpoch | None = None,  # tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is None else snapshot_id
        self.size: int = size
        self.position: int = position
        self.unaligned_records: Buffer = unaligned_records
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.index)
        out.int16(self.error_code)
        self.snapshot_id.encode(out, version)
        out.int64(self.size)
        out.int64(self.position)
        out.records(self.unaligned_records)
        known: list[tuple[int, PlainWriter]] = []
        if self.current_leader is not None:
            field = out.nested()
            self.current_leader.encode(field, version)
            known.append((0, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.index = src.int32()
        self.error_code = src.int16()
        self.snapshot_id = SnapshotId.decode(src, version)
        self.size = src.int64()
        self.position = src.int64()
        self.unaligned_records = src.records()
        self.current_leader = None
        unknown = []
        for tag, field in src.tagged():
            if tag == 0:
                self.current_leader = LeaderIdAndEpoch.decode(field, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self


class FetchSnapshotResponseTopicSnapshot(Struct):
    """Stands in `FetchSnapshotResponse.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotResponsePartitionSnapshot] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[FetchSnapshotResponsePartitionSnapshot] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for fetch_snapshot_response_partition_snapshot in self.partitions:
            fetch_snapshot_response_partition_snapshot.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(FetchSnapshotResponsePartitionSnapshot, version)
        self.unknown_tags = src.tags()
        return self


class NodeEndpoint(Struct):
    """Stands in `FetchSnapshotResponse.node_endpoints`."""

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


class FetchSnapshotResponse(Response):
    """Answers `FetchSnapshotRequest`."""

    API: ClassVar[ApiKey] = ApiKey.FETCH_SNAPSHOT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "topics", "node_endpoints", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[FetchSnapshotResponseTopicSnapshot] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # v1+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: list[FetchSnapshotResponseTopicSnapshot] = [] if topics is EMPTY else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.array_length(len(self.topics))
        for fetch_snapshot_response_topic_snapshot in self.topics:
            fetch_snapshot_response_topic_snapshot.encode(out, version)
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
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.topics = src.structs(FetchSnapshotResponseTopicSnapshot, version)
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


class FetchSnapshotRequestPartitionSnapshot(Struct):
    """Stands in `FetchSnapshotRequestTopicSnapshot.partitions`."""

    __slots__ = ("partition", "current_leader_epoch", "snapshot_id", "position", "replica_directory_id", "unknown_tags")

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: SnapshotId | None = None,
        position: int = 0,
        replica_directory_id: bytes = ZERO_UUID,  # v1+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is None else snapshot_id
        self.position: int = position
        self.replica_directory_id: bytes = replica_directory_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition)
        out.int32(self.current_leader_epoch)
        self.snapshot_id.encode(out, version)
        out.int64(self.position)
        known: list[tuple[int, PlainWriter]] = []
        if self.replica_directory_id != ZERO_UUID and version >= 1:
            field = out.nested()
            field.uuid(self.replica_directory_id)
            known.append((0, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition = src.int32()
        self.current_leader_epoch = src.int32()
        self.snapshot_id = SnapshotId.decode(src, version)
        self.position = src.int64()
        self.replica_directory_id = ZERO_UUID
        unknown = []
        for tag, field in src.tagged():
            if tag == 0 and version >= 1:
                self.replica_directory_id = field.uuid()
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self


class FetchSnapshotRequestTopicSnapshot(Struct):
    """Stands in `FetchSnapshotRequest.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[FetchSnapshotRequestPartitionSnapshot] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[FetchSnapshotRequestPartitionSnapshot] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for fetch_snapshot_request_partition_snapshot in self.partitions:
            fetch_snapshot_request_partition_snapshot.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(FetchSnapshotRequestPartitionSnapshot, version)
        self.unknown_tags = src.tags()
        return self


class FetchSnapshotRequest(Request[FetchSnapshotResponse]):
    """Answered by `FetchSnapshotResponse`."""

    API: ClassVar[ApiKey] = ApiKey.FETCH_SNAPSHOT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[FetchSnapshotResponse]] = FetchSnapshotResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"replica_directory_id": 1}
    __slots__ = ("replica_id", "max_bytes", "topics", "cluster_id", "unknown_tags")

    def __init__(
        self,
        *,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[FetchSnapshotRequestTopicSnapshot] = EMPTY,
        cluster_id: str | None = None,  # tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.replica_id: int = replica_id
        self.max_bytes: int = max_bytes
        self.topics: list[FetchSnapshotRequestTopicSnapshot] = [] if topics is EMPTY else topics
        self.cluster_id: str | None = cluster_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.replica_id)
        out.int32(self.max_bytes)
        out.array_length(len(self.topics))
        for fetch_snapshot_request_topic_snapshot in self.topics:
            fetch_snapshot_request_topic_snapshot.encode(out, version)
        known: list[tuple[int, PlainWriter]] = []
        if self.cluster_id is not None:
            field = out.nested()
            field.nullable_string(self.cluster_id)
            known.append((0, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.replica_id = src.int32()
        self.max_bytes = src.int32()
        self.topics = src.structs(FetchSnapshotRequestTopicSnapshot, version)
        self.cluster_id = None
        unknown = []
        for tag, field in src.tagged():
            if tag == 0:
                self.cluster_id = field.nullable_string()
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self
