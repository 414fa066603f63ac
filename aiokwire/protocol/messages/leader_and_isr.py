"""LeaderAndIsr (key 4), versions 0-7, flexible from 4.

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


class LeaderAndIsrPartitionError(Struct):
    """Stands in `LeaderAndIsrResponse.partition_errors`."""

    __slots__ = ("topic_name", "partition_index", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",  # v0-4
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 4:
            out.string(self.topic_name)
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string() if version <= 4 else ""
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class LeaderAndIsrTopicError(Struct):
    """Stands in `LeaderAndIsrResponse.topics`."""

    __slots__ = ("topic_id", "partition_errors", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partition_errors: list[LeaderAndIsrPartitionError] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partition_errors: list[LeaderAndIsrPartitionError] = [] if partition_errors is EMPTY else partition_errors
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.array_length(len(self.partition_errors))
        for leader_and_isr_partition_error in self.partition_errors:
            leader_and_isr_partition_error.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partition_errors = src.structs(LeaderAndIsrPartitionError, version)
        self.unknown_tags = src.tags()
        return self


class LeaderAndIsrResponse(Response):
    """Answers `LeaderAndIsrRequest`."""

    API: ClassVar[ApiKey] = ApiKey.LEADER_AND_ISR
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 7, flexible=4)
    __slots__ = ("error_code", "partition_errors", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: list[LeaderAndIsrPartitionError] = EMPTY,  # v0-4
        topics: list[LeaderAndIsrTopicError] = EMPTY,  # v5+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition_errors: list[LeaderAndIsrPartitionError] = [] if partition_errors is EMPTY else partition_errors
        self.topics: list[LeaderAndIsrTopicError] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        if version <= 4:
            out.array_length(len(self.partition_errors))
            for leader_and_isr_partition_error in self.partition_errors:
                leader_and_isr_partition_error.encode(out, version)
        elif self.partition_errors:
            raise self.unsupported("partition_errors", version)
        if version >= 5:
            out.array_length(len(self.topics))
            for leader_and_isr_topic_error in self.topics:
                leader_and_isr_topic_error.encode(out, version)
        elif self.topics:
            raise self.unsupported("topics", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.partition_errors = src.structs(LeaderAndIsrPartitionError, version) if version <= 4 else []
        self.topics = src.structs(LeaderAndIsrTopicError, version) if version >= 5 else []
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.partition_errors:
            yield entry.error_code


class LeaderAndIsrPartitionState(Struct):
    """Stands in `LeaderAndIsrRequest.ungrouped_partition_states`."""

    __slots__ = (
        "topic_name",
        "partition_index",
        "controller_epoch",
        "leader",
        "leader_epoch",
        "isr",
        "partition_epoch",
        "replicas",
        "adding_replicas",
        "removing_replicas",
        "is_new",
        "leader_recovery_state",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        topic_name: str = "",  # v0-1
        partition_index: int = 0,
        controller_epoch: int = 0,
        leader: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY,
        partition_epoch: int = 0,
        replicas: list[int] = EMPTY,
        adding_replicas: list[int] = EMPTY,  # v3+
        removing_replicas: list[int] = EMPTY,  # v3+
        is_new: bool = False,  # v1+
        leader_recovery_state: int = 0,  # v6+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index
        self.controller_epoch: int = controller_epoch
        self.leader: int = leader
        self.leader_epoch: int = leader_epoch
        self.isr: list[int] = [] if isr is EMPTY else isr
        self.partition_epoch: int = partition_epoch
        self.replicas: list[int] = [] if replicas is EMPTY else replicas
        self.adding_replicas: list[int] = [] if adding_replicas is EMPTY else adding_replicas
        self.removing_replicas: list[int] = [] if removing_replicas is EMPTY else removing_replicas
        self.is_new: bool = is_new
        self.leader_recovery_state: int = leader_recovery_state
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 1:
            out.string(self.topic_name)
        out.int32(self.partition_index)
        out.int32(self.controller_epoch)
        out.int32(self.leader)
        out.int32(self.leader_epoch)
        out.int32s(self.isr)
        out.int32(self.partition_epoch)
        out.int32s(self.replicas)
        if version >= 3:
            out.int32s(self.adding_replicas)
            out.int32s(self.removing_replicas)
        if version >= 1:
            out.boolean(self.is_new)
        if version >= 6:
            out.int8(self.leader_recovery_state)
        elif self.leader_recovery_state != 0:
            raise self.unsupported("leader_recovery_state", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string() if version <= 1 else ""
        self.partition_index = src.int32()
        self.controller_epoch = src.int32()
        self.leader = src.int32()
        self.leader_epoch = src.int32()
        self.isr = src.int32s()
        self.partition_epoch = src.int32()
        self.replicas = src.int32s()
        if version >= 3:
            self.adding_replicas = src.int32s()
            self.removing_replicas = src.int32s()
        else:
            self.adding_replicas = []
            self.removing_replicas = []
        self.is_new = src.boolean() if version >= 1 else False
        self.leader_recovery_state = src.int8() if version >= 6 else 0
        self.unknown_tags = src.tags()
        return self


class LeaderAndIsrTopicState(Struct):
    """Stands in `LeaderAndIsrRequest.topic_states`."""

    __slots__ = ("topic_name", "topic_id", "partition_states", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,  # v5+
        partition_states: list[LeaderAndIsrPartitionState] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partition_states: list[LeaderAndIsrPartitionState] = [] if partition_states is EMPTY else partition_states
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        if version >= 5:
            out.uuid(self.topic_id)
        out.array_length(len(self.partition_states))
        for leader_and_isr_partition_state in self.partition_states:
            leader_and_isr_partition_state.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.topic_id = src.uuid() if version >= 5 else ZERO_UUID
        self.partition_states = src.structs(LeaderAndIsrPartitionState, version)
        self.unknown_tags = src.tags()
        return self


class LeaderAndIsrLiveLeader(Struct):
    """Stands in `LeaderAndIsrRequest.live_leaders`."""

    __slots__ = ("broker_id", "host_name", "port", "unknown_tags")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host_name: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.host_name: str = host_name
        self.port: int = port
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        out.string(self.host_name)
        out.int32(self.port)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.host_name = src.string()
        self.port = src.int32()
        self.unknown_tags = src.tags()
        return self


class LeaderAndIsrRequest(Request[LeaderAndIsrResponse]):
    """Answered by `LeaderAndIsrResponse`."""

    API: ClassVar[ApiKey] = ApiKey.LEADER_AND_ISR
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 7, flexible=4)
    SERVED_FROM: ClassVar[int | None] = None
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ()
    RESPONSE: ClassVar[type[LeaderAndIsrResponse]] = LeaderAndIsrResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "is_kraft_controller": 7,
        "broker_epoch": 2,
        "type": 5,
        "is_new": 1,
        "topic_states": 2,
        "topic_id": 5,
        "partition_states": 2,
        "adding_replicas": 3,
        "removing_replicas": 3,
        "leader_recovery_state": 6,
    }
    __slots__ = (
        "controller_id",
        "is_kraft_controller",
        "controller_epoch",
        "broker_epoch",
        "type",
        "ungrouped_partition_states",
        "topic_states",
        "live_leaders",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,  # v7+
        controller_epoch: int = 0,
        broker_epoch: int = -1,  # v2+
        type: int = 0,  # v5+
        ungrouped_partition_states: list[LeaderAndIsrPartitionState] = EMPTY,  # v0-1
        topic_states: list[LeaderAndIsrTopicState] = EMPTY,  # v2+
        live_leaders: list[LeaderAndIsrLiveLeader] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.controller_id: int = controller_id
        self.is_kraft_controller: bool = is_kraft_controller
        self.controller_epoch: int = controller_epoch
        self.broker_epoch: int = broker_epoch
        self.type: int = type
        self.ungrouped_partition_states: list[LeaderAndIsrPartitionState] = (
            [] if ungrouped_partition_states is EMPTY else ungrouped_partition_states
        )
        self.topic_states: list[LeaderAndIsrTopicState] = [] if topic_states is EMPTY else topic_states
        self.live_leaders: list[LeaderAndIsrLiveLeader] = [] if live_leaders is EMPTY else live_leaders
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.controller_id)
        if version >= 7:
            out.boolean(self.is_kraft_controller)
        elif self.is_kraft_controller:
            raise self.unsupported("is_kraft_controller", version)
        out.int32(self.controller_epoch)
        if version >= 2:
            out.int64(self.broker_epoch)
        if version >= 5:
            out.int8(self.type)
        elif self.type != 0:
            raise self.unsupported("type", version)
        if version <= 1:
            out.array_length(len(self.ungrouped_partition_states))
            for leader_and_isr_partition_state in self.ungrouped_partition_states:
                leader_and_isr_partition_state.encode(out, version)
        elif self.ungrouped_partition_states:
            raise self.unsupported("ungrouped_partition_states", version)
        if version >= 2:
            out.array_length(len(self.topic_states))
            for leader_and_isr_topic_state in self.topic_states:
                leader_and_isr_topic_state.encode(out, version)
        elif self.topic_states:
            raise self.unsupported("topic_states", version)
        out.array_length(len(self.live_leaders))
        for leader_and_isr_live_leader in self.live_leaders:
            leader_and_isr_live_leader.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.controller_id = src.int32()
        self.is_kraft_controller = src.boolean() if version >= 7 else False
        self.controller_epoch = src.int32()
        self.broker_epoch = src.int64() if version >= 2 else -1
        self.type = src.int8() if version >= 5 else 0
        self.ungrouped_partition_states = src.structs(LeaderAndIsrPartitionState, version) if version <= 1 else []
        self.topic_states = src.structs(LeaderAndIsrTopicState, version) if version >= 2 else []
        self.live_leaders = src.structs(LeaderAndIsrLiveLeader, version)
        self.unknown_tags = src.tags()
        return self
