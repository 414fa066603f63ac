"""Produce (key 0), versions 0-13, flexible from 9.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping
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


class BatchIndexAndErrorMessage(Struct):
    """Stands in `PartitionProduceResponse.record_errors`."""

    __slots__ = ("batch_index", "batch_index_error_message", "unknown_tags")

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.batch_index: int = batch_index
        self.batch_index_error_message: str | None = batch_index_error_message
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.batch_index)
        out.nullable_string(self.batch_index_error_message)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.batch_index = src.int32()
        self.batch_index_error_message = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class LeaderIdAndEpoch(Struct):
    """Stands in `PartitionProduceResponse.current_leader`."""

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


class PartitionProduceResponse(Struct):
    """Stands in `TopicProduceResponse.partition_responses`."""

    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,  # v2+
        log_start_offset: int = -1,  # v5+
        record_errors: list[BatchIndexAndErrorMessage] = EMPTY,  # v8+
        error_message: str | None = None,  # v8+
        current_leader: LeaderIdAndEpoch | None = None,  # v10+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.base_offset: int = base_offset
        self.log_append_time_ms: int = log_append_time_ms
        self.log_start_offset: int = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is EMPTY else record_errors
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.index)
        out.int16(self.error_code)
        out.int64(self.base_offset)
        if version >= 2:
            out.int64(self.log_append_time_ms)
        if version >= 5:
            out.int64(self.log_start_offset)
        if version >= 8:
            out.array_length(len(self.record_errors))
            for batch_index_and_error_message in self.record_errors:
                batch_index_and_error_message.encode(out, version)
            out.nullable_string(self.error_message)
        known: list[tuple[int, PlainWriter]] = []
        if self.current_leader is not None:
            if version < 10:
                raise self.unsupported("current_leader", version)
            field = out.nested()
            self.current_leader.encode(field, version)
            known.append((0, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.index = src.int32()
        self.error_code = src.int16()
        self.base_offset = src.int64()
        self.log_append_time_ms = src.int64() if version >= 2 else -1
        self.log_start_offset = src.int64() if version >= 5 else -1
        if version >= 8:
            self.record_errors = src.structs(BatchIndexAndErrorMessage, version)
            self.error_message = src.nullable_string()
        else:
            self.record_errors = []
            self.error_message = None
        self.current_leader = None
        unknown = []
        for tag, field in src.tagged():
            if tag == 0 and version >= 10:
                self.current_leader = LeaderIdAndEpoch.decode(field, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self


class TopicProduceResponse(Struct):
    """Stands in `ProduceResponse.responses`."""

    __slots__ = ("name", "topic_id", "partition_responses", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",  # v0-12
        topic_id: bytes = ZERO_UUID,  # v13+
        partition_responses: list[PartitionProduceResponse] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_responses: list[PartitionProduceResponse] = (
            [] if partition_responses is EMPTY else partition_responses
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 12:
            out.string(self.name)
        if version >= 13:
            out.uuid(self.topic_id)
        out.array_length(len(self.partition_responses))
        for partition_produce_response in self.partition_responses:
            partition_produce_response.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string() if version <= 12 else ""
        self.topic_id = src.uuid() if version >= 13 else ZERO_UUID
        self.partition_responses = src.structs(PartitionProduceResponse, version)
        self.unknown_tags = src.tags()
        return self


class NodeEndpoint(Struct):
    """Stands in `ProduceResponse.node_endpoints`."""

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


class ProduceResponse(Response):
    """Answers `ProduceRequest`."""

    API: ClassVar[ApiKey] = ApiKey.PRODUCE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 13, flexible=9)
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints", "unknown_tags")

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] = EMPTY,
        throttle_time_ms: int = 0,  # v1+
        node_endpoints: list[NodeEndpoint] = EMPTY,  # v10+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is EMPTY else responses
        self.throttle_time_ms: int = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is EMPTY else node_endpoints
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.responses))
        for topic_produce_response in self.responses:
            topic_produce_response.encode(out, version)
        if version >= 1:
            out.int32(self.throttle_time_ms)
        known: list[tuple[int, PlainWriter]] = []
        if self.node_endpoints:
            if version < 10:
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
        self.responses = src.structs(TopicProduceResponse, version)
        self.throttle_time_ms = src.int32() if version >= 1 else 0
        self.node_endpoints = []
        unknown = []
        for tag, field in src.tagged():
            if tag == 0 and version >= 10:
                self.node_endpoints = field.structs(NodeEndpoint, version)
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self


class PartitionProduceData(Struct):
    """Stands in `TopicProduceData.partition_data`."""

    __slots__ = ("index", "records", "unknown_tags")

    def __init__(
        self,
        *,
        index: int = 0,
        records: Buffer | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.index: int = index
        self.records: Buffer | None = records
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.index)
        out.nullable_records(self.records)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.index = src.int32()
        self.records = src.nullable_records()
        self.unknown_tags = src.tags()
        return self


class TopicProduceData(Struct):
    """Stands in `ProduceRequest.topic_data`."""

    __slots__ = ("name", "topic_id", "partition_data", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",  # v0-12
        topic_id: bytes = ZERO_UUID,  # v13+
        partition_data: list[PartitionProduceData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_data: list[PartitionProduceData] = [] if partition_data is EMPTY else partition_data
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 12:
            out.string(self.name)
        if version >= 13:
            out.uuid(self.topic_id)
        out.array_length(len(self.partition_data))
        for partition_produce_data in self.partition_data:
            partition_produce_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string() if version <= 12 else ""
        self.topic_id = src.uuid() if version >= 13 else ZERO_UUID
        self.partition_data = src.structs(PartitionProduceData, version)
        self.unknown_tags = src.tags()
        return self


class ProduceRequest(Request[ProduceResponse]):
    """Answered by `ProduceResponse`."""

    API: ClassVar[ApiKey] = ApiKey.PRODUCE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 13, flexible=9)
    SERVED_FROM: ClassVar[int | None] = 3
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ProduceResponse]] = ProduceResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"transactional_id": 3, "topic_id": 13}
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data", "unknown_tags")

    def __init__(
        self,
        *,
        transactional_id: str | None = None,  # v3+
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.topic_data: list[TopicProduceData] = [] if topic_data is EMPTY else topic_data
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 3:
            out.nullable_string(self.transactional_id)
        elif self.transactional_id is not None:
            raise self.unsupported("transactional_id", version)
        out.int16(self.acks)
        out.int32(self.timeout_ms)
        out.array_length(len(self.topic_data))
        for topic_produce_data in self.topic_data:
            topic_produce_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.transactional_id = src.nullable_string() if version >= 3 else None
        self.acks = src.int16()
        self.timeout_ms = src.int32()
        self.topic_data = src.structs(TopicProduceData, version)
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
