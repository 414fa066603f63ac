"""UpdateMetadata (key 6), versions 0-8, flexible from 6.

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


class UpdateMetadataResponse(Response):
    """Answers `UpdateMetadataRequest`."""

    API: ClassVar[ApiKey] = ApiKey.UPDATE_METADATA
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 8, flexible=6)
    __slots__ = ("error_code", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class UpdateMetadataPartitionState(Struct):
    """Stands in `UpdateMetadataRequest.ungrouped_partition_states`."""

    __slots__ = (
        "topic_name",
        "partition_index",
        "controller_epoch",
        "leader",
        "leader_epoch",
        "isr",
        "zk_version",
        "replicas",
        "offline_replicas",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",  # v0-4
        partition_index: int = 0,
        controller_epoch: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY,
        zk_version: int = 0,
        replicas: list[int] = EMPTY,
        offline_replicas: list[int] = EMPTY,  # v4+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index
        self.controller_epoch: int = controller_epoch
        self.leader: int = leader
        self.leader_epoch: int = leader_epoch
        self.isr: list[int] = [] if isr is EMPTY else isr
        self.zk_version: int = zk_version
        self.replicas: list[int] = [] if replicas is EMPTY else replicas
        self.offline_replicas: list[int] = [] if offline_replicas is EMPTY else offline_replicas
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 4:
            out.string(self.topic_name)
        out.int32(self.partition_index)
        out.int32(self.controller_epoch)
        out.int32(self.leader)
        out.int32(self.leader_epoch)
        out.int32s(self.isr)
        out.int32(self.zk_version)
        out.int32s(self.replicas)
        if version >= 4:
            out.int32s(self.offline_replicas)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string() if version <= 4 else ""
        self.partition_index = src.int32()
        self.controller_epoch = src.int32()
        self.leader = src.int32()
        self.leader_epoch = src.int32()
        self.isr = src.int32s()
        self.zk_version = src.int32()
        self.replicas = src.int32s()
        self.offline_replicas = src.int32s() if version >= 4 else []
        self.unknown_tags = src.tags()
        return self


class UpdateMetadataTopicState(Struct):
    """Stands in `UpdateMetadataRequest.topic_states`."""

    __slots__ = ("topic_name", "topic_id", "partition_states", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,  # v7+
        partition_states: list[UpdateMetadataPartitionState] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partition_states: list[UpdateMetadataPartitionState] = (
            [] if partition_states is EMPTY else partition_states
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        if version >= 7:
            out.uuid(self.topic_id)
        out.array_length(len(self.partition_states))
        for update_metadata_partition_state in self.partition_states:
            update_metadata_partition_state.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.topic_id = src.uuid() if version >= 7 else ZERO_UUID
        self.partition_states = src.structs(UpdateMetadataPartitionState, version)
        self.unknown_tags = src.tags()
        return self


class UpdateMetadataEndpoint(Struct):
    """Stands in `UpdateMetadataBroker.endpoints`."""

    __slots__ = ("port", "host", "listener", "security_protocol", "unknown_tags")

    def __init__(
        self,
        *,
        port: int = 0,
        host: str = "",
        listener: str = "",  # v3+
        security_protocol: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.port: int = port
        self.host: str = host
        self.listener: str = listener
        self.security_protocol: int = security_protocol
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.port)
        out.string(self.host)
        if version >= 3:
            out.string(self.listener)
        out.int16(self.security_protocol)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.port = src.int32()
        self.host = src.string()
        self.listener = src.string() if version >= 3 else ""
        self.security_protocol = src.int16()
        self.unknown_tags = src.tags()
        return self


class UpdateMetadataBroker(Struct):
    """Stands in `UpdateMetadataRequest.live_brokers`."""

    __slots__ = ("id", "v0_host", "v0_port", "endpoints", "rack", "unknown_tags")

    def __init__(
        self,
        *,
        id: int = 0,
        v0_host: str = "",  # v0
        v0_port: int = 0,  # v0
        endpoints: list[UpdateMetadataEndpoint] = EMPTY,  # v1+
        rack: str | None = "",  # v2+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.id: int = id
        self.v0_host: str = v0_host
        self.v0_port: int = v0_port
        self.endpoints: list[UpdateMetadataEndpoint] = [] if endpoints is EMPTY else endpoints
        self.rack: str | None = rack
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.id)
        if version <= 0:
            out.string(self.v0_host)
            out.int32(self.v0_port)
        if version >= 1:
            out.array_length(len(self.endpoints))
            for update_metadata_endpoint in self.endpoints:
                update_metadata_endpoint.encode(out, version)
        if version >= 2:
            out.nullable_string(self.rack)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.id = src.int32()
        if version <= 0:
            self.v0_host = src.string()
            self.v0_port = src.int32()
        else:
            self.v0_host = ""
            self.v0_port = 0
        self.endpoints = src.structs(UpdateMetadataEndpoint, version) if version >= 1 else []
        self.rack = src.nullable_string() if version >= 2 else ""
        self.unknown_tags = src.tags()
        return self


class UpdateMetadataRequest(Request[UpdateMetadataResponse]):
    """Answered by `UpdateMetadataResponse`."""

    API: ClassVar[ApiKey] = ApiKey.UPDATE_METADATA
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 8, flexible=6)
    SERVED_FROM: ClassVar[int | None] = None
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ()
    RESPONSE: ClassVar[type[UpdateMetadataResponse]] = UpdateMetadataResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "is_kraft_controller": 8,
        "type": 8,
        "broker_epoch": 5,
        "offline_replicas": 4,
        "topic_states": 5,
        "topic_id": 7,
        "partition_states": 5,
        "endpoints": 1,
        "port": 1,
        "host": 1,
        "listener": 3,
        "security_protocol": 1,
        "rack": 2,
    }
    __slots__ = (
        "controller_id",
        "is_kraft_controller",
        "controller_epoch",
        "broker_epoch",
        "ungrouped_partition_states",
        "topic_states",
        "live_brokers",
        "type",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,  # v8+
        controller_epoch: int = 0,
        broker_epoch: int = -1,  # v5+
        ungrouped_partition_states: list[UpdateMetadataPartitionState] = EMPTY,  # v0-4
        topic_states: list[UpdateMetadataTopicState] = EMPTY,  # v5+
        live_brokers: list[UpdateMetadataBroker] = EMPTY,
        type: int = 0,  # v8+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.controller_id: int = controller_id
        self.is_kraft_controller: bool = is_kraft_controller
        self.controller_epoch: int = controller_epoch
        self.broker_epoch: int = broker_epoch
        self.ungrouped_partition_states: list[UpdateMetadataPartitionState] = (
            [] if ungrouped_partition_states is EMPTY else ungrouped_partition_states
        )
        self.topic_states: list[UpdateMetadataTopicState] = [] if topic_states is EMPTY else topic_states
        self.live_brokers: list[UpdateMetadataBroker] = [] if live_brokers is EMPTY else live_brokers
        self.type: int = type
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.controller_id)
        if version >= 8:
            out.boolean(self.is_kraft_controller)
        elif self.is_kraft_controller:
            raise self.unsupported("is_kraft_controller", version)
        out.int32(self.controller_epoch)
        if version >= 5:
            out.int64(self.broker_epoch)
        if version <= 4:
            out.array_length(len(self.ungrouped_partition_states))
            for update_metadata_partition_state in self.ungrouped_partition_states:
                update_metadata_partition_state.encode(out, version)
        elif self.ungrouped_partition_states:
            raise self.unsupported("ungrouped_partition_states", version)
        if version >= 5:
            out.array_length(len(self.topic_states))
            for update_metadata_topic_state in self.topic_states:
                update_metadata_topic_state.encode(out, version)
        elif self.topic_states:
            raise self.unsupported("topic_states", version)
        out.array_length(len(self.live_brokers))
        for update_metadata_broker in self.live_brokers:
            update_metadata_broker.encode(out, version)
        known: list[tuple[int, PlainWriter]] = []
        if self.type != 0:
            if version < 8:
                raise self.unsupported("type", version)
            field = out.nested()
            field.int8(self.type)
            known.append((0, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.controller_id = src.int32()
        self.is_kraft_controller = src.boolean() if version >= 8 else False
        self.controller_epoch = src.int32()
        self.broker_epoch = src.int64() if version >= 5 else -1
        self.ungrouped_partition_states = src.structs(UpdateMetadataPartitionState, version) if version <= 4 else []
        self.topic_states = src.structs(UpdateMetadataTopicState, version) if version >= 5 else []
        self.live_brokers = src.structs(UpdateMetadataBroker, version)
        self.type = 0
        unknown = []
        for tag, field in src.tagged():
            if tag == 0 and version >= 8:
                self.type = field.int8()
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self
