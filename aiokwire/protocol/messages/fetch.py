"""Fetch (key 1), versions 0-18, flexible from 12.

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


class EpochEndOffset(Struct):
    """Stands in `PartitionData.diverging_epoch`."""

    __slots__ = ("epoch", "end_offset", "unknown_tags")

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.epoch: int = epoch
        self.end_offset: int = end_offset
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.epoch)
        out.int64(self.end_offset)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.epoch = src.int32()
        self.end_offset = src.int64()
        self.unknown_tags = src.tags()
        return self


class LeaderIdAndEpoch(Struct):
    """Stands in `PartitionData.current_leader`."""

    __slots__ = ("leader_id", "leader_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
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


class SnapshotId(Struct):
    """Stands in `PartitionData.snapshot_id`."""

    __slots__ = ("end_offset", "epoch", "unknown_tags")

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
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


class AbortedTransaction(Struct):
    """Stands in `PartitionData.aborted_transactions`."""

    __slots__ = ("producer_id", "first_offset", "unknown_tags")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.producer_id: int = producer_id
        self.first_offset: int = first_offset
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int64(self.producer_id)
        out.int64(self.first_offset)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.producer_id = src.int64()
        self.first_offset = src.int64()
        self.unknown_tags = src.tags()
        return self


class PartitionData(Struct):
    """Stands in `FetchableTopicResponse.partitions`."""

    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,  # v4+
        log_start_offset: int = -1,  # v5+
        aborted_transactions: list[AbortedTransaction] | None = EMPTY,  # v4+
        preferred_read_replica: int = -1,  # v11+
        records: Buffer | None = None,
        diverging_epoch: EpochEndOffset | None = None,  # v12+, tag 0
        current_leader: LeaderIdAndEpoch | None = None,  # v12+, tag 1
        snapshot_id: SnapshotId | None = None,  # v12+, tag 2
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.high_watermark: int = high_watermark
        self.last_stable_offset: int = last_stable_offset
        self.log_start_offset: int = log_start_offset
        self.aborted_transactions: list[AbortedTransaction] | None = (
            [] if aborted_transactions is EMPTY else aborted_transactions
        )
        self.preferred_read_replica: int = preferred_read_replica
        self.records: Buffer | None = records
        self.diverging_epoch: EpochEndOffset | None = diverging_epoch
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        self.snapshot_id: SnapshotId | None = snapshot_id
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.int64(self.high_watermark)
        if version >= 4:
            out.int64(self.last_stable_offset)
        if version >= 5:
            out.int64(self.log_start_offset)
        if version >= 4:
            out.nullable_array_length(-1 if self.aborted_transactions is None else len(self.aborted_transactions))
            for aborted_transaction in self.aborted_transactions or ():
                aborted_transaction.encode(out, version)
        if version >= 11:
            out.int32(self.preferred_read_replica)
        elif self.preferred_read_replica != -1:
            raise self.unsupported("preferred_read_replica", version)
        out.nullable_records(self.records)
        known: list[tuple[int, PlainWriter]] = []
        if self.diverging_epoch is not None:
            if version < 12:
                raise self.unsupported("diverging_epoch", version)
            field = out.nested()
            self.diverging_epoch.encode(field, version)
            known.append((0, field))
        if self.current_leader is not None:
            if version < 12:
                raise self.unsupported("current_leader", version)
            field = out.nested()
            self.current_leader.encode(field, version)
            known.append((1, field))
        if self.snapshot_id is not None:
            if version < 12:
                raise self.unsupported("snapshot_id", version)
            field = out.nested()
            self.snapshot_id.encode(field, version)
            known.append((2, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.high_watermark = src.int64()
        self.last_stable_offset = src.int64() if version >= 4 else -1
        self.log_start_offset = src.int64() if version >= 5 else -1
        self.aborted_transactions = src.nullable_structs(AbortedTransaction, version) if version >= 4 else []
        self.preferred_read_replica = src.int32() if version >= 11 else -1
        self.records = src.nullable_records()
        self.diverging_epoch = None
        self.current_leader = None
        self.snapshot_id = None
        unknown = []
        for tag, field in src.tagged():
            if tag == 0:
                self.diverging_epoch = EpochEndOffset.decode(field, version)
            elif tag == 1:
                self.current_leader = LeaderIdAndEpoch.decode(field, version)
            elif tag == 2:
                self.snapshot_id = SnapshotId.decode(field, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self


class FetchableTopicResponse(Struct):
    """Stands in `FetchResponse.responses`."""

    __slots__ = ("topic", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",  # v0-12
        topic_id: bytes = ZERO_UUID,  # v13+
        partitions: list[PartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 12:
            out.string(self.topic)
        if version >= 13:
            out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for partition_data in self.partitions:
            partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string() if version <= 12 else ""
        self.topic_id = src.uuid() if version >= 13 else ZERO_UUID
        self.partitions = src.structs(PartitionData, version)
        self.unknown_tags = src.tags()
        return self


class NodeEndpoint(Struct):
    """Stands in `FetchResponse.node_endpoints`."""

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


class FetchResponse(Response):
    """Answers `FetchRequest`."""

    API: ClassVar[ApiKey] = ApiKey.FETCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 18, flexible=12)
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v1+
        error_code: int = 0,  # v7+
        session_id: int = 0,  # v7+
        responses: list[FetchableTopicResponse] = EMPTY,
        node_endpoints: list[NodeEndpoint] = EMPTY,  # v16+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.session_id: int = session_id
        self.responses: list[FetchableTopicResponse] = [] if responses is EMPTY else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 1:
            out.int32(self.throttle_time_ms)
        if version >= 7:
            out.int16(self.error_code)
            out.int32(self.session_id)
        elif self.session_id != 0:
            raise self.unsupported("session_id", version)
        out.array_length(len(self.responses))
        for fetchable_topic_response in self.responses:
            fetchable_topic_response.encode(out, version)
        known: list[tuple[int, PlainWriter]] = []
        if self.node_endpoints:
            if version < 16:
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
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        if version >= 7:
            self.error_code = src.int16()
            self.session_id = src.int32()
        else:
            self.error_code = 0
            self.session_id = 0
        self.responses = src.structs(FetchableTopicResponse, version)
        self.node_endpoints = []
        unknown = []
        for tag, field in src.tagged():
            if tag == 0 and version >= 16:
                self.node_endpoints = field.structs(NodeEndpoint, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ReplicaState(Struct):
    """Stands in `FetchRequest.replica_state`."""

    __slots__ = ("replica_id", "replica_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_epoch: int = replica_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.replica_id)
        out.int64(self.replica_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.replica_id = src.int32()
        self.replica_epoch = src.int64()
        self.unknown_tags = src.tags()
        return self


class FetchPartition(Struct):
    """Stands in `FetchTopic.partitions`."""

    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,  # v9+
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,  # v12+
        log_start_offset: int = -1,  # v5+
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,  # v17+, tag 0
        high_watermark: int = 9223372036854775807,  # v18+, tag 1
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.fetch_offset: int = fetch_offset
        self.last_fetched_epoch: int = last_fetched_epoch
        self.log_start_offset: int = log_start_offset
        self.partition_max_bytes: int = partition_max_bytes
        self.replica_directory_id: bytes = replica_directory_id
        self.high_watermark: int = high_watermark
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition)
        if version >= 9:
            out.int32(self.current_leader_epoch)
        out.int64(self.fetch_offset)
        if version >= 12:
            out.int32(self.last_fetched_epoch)
        elif self.last_fetched_epoch != -1:
            raise self.unsupported("last_fetched_epoch", version)
        if version >= 5:
            out.int64(self.log_start_offset)
        out.int32(self.partition_max_bytes)
        known: list[tuple[int, PlainWriter]] = []
        if self.replica_directory_id != ZERO_UUID and version >= 17:
            field = out.nested()
            field.uuid(self.replica_directory_id)
            known.append((0, field))
        if self.high_watermark != 9223372036854775807 and version >= 18:
            field = out.nested()
            field.int64(self.high_watermark)
            known.append((1, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition = src.int32()
        self.current_leader_epoch = src.int32() if version >= 9 else -1
        self.fetch_offset = src.int64()
        self.last_fetched_epoch = src.int32() if version >= 12 else -1
        self.log_start_offset = src.int64() if version >= 5 else -1
        self.partition_max_bytes = src.int32()
        self.replica_directory_id = ZERO_UUID
        self.high_watermark = 9223372036854775807
        unknown = []
        for tag, field in src.tagged():
            if tag == 0 and version >= 17:
                self.replica_directory_id = field.uuid()
            elif tag == 1 and version >= 18:
                self.high_watermark = field.int64()
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self


class FetchTopic(Struct):
    """Stands in `FetchRequest.topics`."""

    __slots__ = ("topic", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",  # v0-12
        topic_id: bytes = ZERO_UUID,  # v13+
        partitions: list[FetchPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 12:
            out.string(self.topic)
        if version >= 13:
            out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for fetch_partition in self.partitions:
            fetch_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string() if version <= 12 else ""
        self.topic_id = src.uuid() if version >= 13 else ZERO_UUID
        self.partitions = src.structs(FetchPartition, version)
        self.unknown_tags = src.tags()
        return self


class ForgottenTopic(Struct):
    """Stands in `FetchRequest.forgotten_topics_data`."""

    __slots__ = ("topic", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",  # v7-12
        topic_id: bytes = ZERO_UUID,  # v13+
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 12:
            out.string(self.topic)
        if version >= 13:
            out.uuid(self.topic_id)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string() if version <= 12 else ""
        self.topic_id = src.uuid() if version >= 13 else ZERO_UUID
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class FetchRequest(Request[FetchResponse]):
    """Answered by `FetchResponse`."""

    API: ClassVar[ApiKey] = ApiKey.FETCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 18, flexible=12)
    SERVED_FROM: ClassVar[int | None] = 4
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[FetchResponse]] = FetchResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "cluster_id": 12,
        "replica_state": 15,
        "replica_epoch": 15,
        "max_bytes": 3,
        "isolation_level": 4,
        "session_id": 7,
        "session_epoch": 7,
        "topic_id": 13,
        "current_leader_epoch": 9,
        "last_fetched_epoch": 12,
        "log_start_offset": 5,
        "replica_directory_id": 17,
        "high_watermark": 18,
        "forgotten_topics_data": 7,
        "rack_id": 11,
    }
    __slots__ = (
        "replica_id",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
        "cluster_id",
        "replica_state",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        replica_id: int = -1,  # v0-14
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,  # v3+
        isolation_level: int = 0,  # v4+
        session_id: int = 0,  # v7+
        session_epoch: int = -1,  # v7+
        topics: list[FetchTopic] = EMPTY,
        forgotten_topics_data: list[ForgottenTopic] = EMPTY,  # v7+
        rack_id: str = "",  # v11+
        cluster_id: str | None = None,  # v12+, tag 0
        replica_state: ReplicaState | None = None,  # v15+, tag 1
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.replica_id: int = replica_id
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.isolation_level: int = isolation_level
        self.session_id: int = session_id
        self.session_epoch: int = session_epoch
        self.topics: list[FetchTopic] = [] if topics is EMPTY else topics
        self.forgotten_topics_data: list[ForgottenTopic] = (
            [] if forgotten_topics_data is EMPTY else forgotten_topics_data
        )
        self.rack_id: str = rack_id
        self.cluster_id: str | None = cluster_id
        self.replica_state: ReplicaState | None = replica_state
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 14:
            out.int32(self.replica_id)
        elif self.replica_id != -1:
            raise self.unsupported("replica_id", version)
        out.int32(self.max_wait_ms)
        out.int32(self.min_bytes)
        if version >= 3:
            out.int32(self.max_bytes)
        if version >= 4:
            out.int8(self.isolation_level)
        if version >= 7:
            out.int32(self.session_id)
            out.int32(self.session_epoch)
        out.array_length(len(self.topics))
        for fetch_topic in self.topics:
            fetch_topic.encode(out, version)
        if version >= 7:
            out.array_length(len(self.forgotten_topics_data))
            for forgotten_topic in self.forgotten_topics_data:
                forgotten_topic.encode(out, version)
        elif self.forgotten_topics_data:
            raise self.unsupported("forgotten_topics_data", version)
        if version >= 11:
            out.string(self.rack_id)
        known: list[tuple[int, PlainWriter]] = []
        if self.cluster_id is not None and version >= 12:
            field = out.nested()
            field.nullable_string(self.cluster_id)
            known.append((0, field))
        if self.replica_state is not None:
            if version < 15:
                raise self.unsupported("replica_state", version)
            field = out.nested()
            self.replica_state.encode(field, version)
            known.append((1, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.replica_id = src.int32() if version <= 14 else -1
        self.max_wait_ms = src.int32()
        self.min_bytes = src.int32()
        self.max_bytes = src.int32() if version >= 3 else 2147483647
        self.isolation_level = src.int8() if version >= 4 else 0
        if version >= 7:
            self.session_id = src.int32()
            self.session_epoch = src.int32()
        else:
            self.session_id = 0
            self.session_epoch = -1
        self.topics = src.structs(FetchTopic, version)
        self.forgotten_topics_data = src.structs(ForgottenTopic, version) if version >= 7 else []
        self.rack_id = src.string() if version >= 11 else ""
        self.cluster_id = None
        self.replica_state = None
        unknown = []
        for tag, field in src.tagged():
            if tag == 0:
                self.cluster_id = field.nullable_string()
            elif tag == 1 and version >= 15:
                self.replica_state = ReplicaState.decode(field, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self

    def broker_wait_ms(self) -> int:
        return max(self.max_wait_ms, 0)
