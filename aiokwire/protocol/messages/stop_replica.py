"""StopReplica (key 5), versions 0-4, flexible from 2.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Self

from aiokwire.protocol._codec import PlainReader, PlainWriter
from aiokwire.protocol.api import (
    EMPTY,
    Request,
    Response,
    Struct,
    UnknownTags,
    VersionRange,
)
from aiokwire.protocol.api_key import ApiKey


class StopReplicaPartitionError(Struct):
    """Stands in `StopReplicaResponse.partition_errors`."""

    __slots__ = ("topic_name", "partition_index", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class StopReplicaResponse(Response):
    """Answers `StopReplicaRequest`."""

    API: ClassVar[ApiKey] = ApiKey.STOP_REPLICA
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=2)
    __slots__ = ("error_code", "partition_errors", "unknown_tags")

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_errors: list[StopReplicaPartitionError] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.partition_errors: list[StopReplicaPartitionError] = [] if partition_errors is EMPTY else partition_errors
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.array_length(len(self.partition_errors))
        for stop_replica_partition_error in self.partition_errors:
            stop_replica_partition_error.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.partition_errors = src.structs(StopReplicaPartitionError, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.partition_errors:
            yield entry.error_code


class StopReplicaPartitionV0(Struct):
    """Stands in `StopReplicaRequest.ungrouped_partitions`."""

    __slots__ = ("topic_name", "partition_index")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.int32(self.partition_index)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partition_index = src.int32()
        return self


class StopReplicaTopicV1(Struct):
    """Stands in `StopReplicaRequest.topics`."""

    __slots__ = ("name", "partition_indexes", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int32s(self.partition_indexes)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partition_indexes = src.int32s()
        self.unknown_tags = src.tags()
        return self


class StopReplicaPartitionState(Struct):
    """Stands in `StopReplicaTopicState.partition_states`."""

    __slots__ = ("partition_index", "leader_epoch", "delete_partition", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = -1,
        delete_partition: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.leader_epoch: int = leader_epoch
        self.delete_partition: bool = delete_partition
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int32(self.leader_epoch)
        out.boolean(self.delete_partition)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.leader_epoch = src.int32()
        self.delete_partition = src.boolean()
        self.unknown_tags = src.tags()
        return self


class StopReplicaTopicState(Struct):
    """Stands in `StopReplicaRequest.topic_states`."""

    __slots__ = ("topic_name", "partition_states", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_states: list[StopReplicaPartitionState] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.partition_states: list[StopReplicaPartitionState] = [] if partition_states is EMPTY else partition_states
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic_name)
        out.array_length(len(self.partition_states))
        for stop_replica_partition_state in self.partition_states:
            stop_replica_partition_state.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string()
        self.partition_states = src.structs(StopReplicaPartitionState, version)
        self.unknown_tags = src.tags()
        return self


class StopReplicaRequest(Request[StopReplicaResponse]):
    """Answered by `StopReplicaResponse`."""

    API: ClassVar[ApiKey] = ApiKey.STOP_REPLICA
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 4, flexible=2)
    SERVED_FROM: ClassVar[int | None] = None
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ()
    RESPONSE: ClassVar[type[StopReplicaResponse]] = StopReplicaResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "is_kraft_controller": 4,
        "broker_epoch": 1,
        "topics": 1,
        "name": 1,
        "partition_indexes": 1,
        "topic_states": 3,
        "partition_states": 3,
        "leader_epoch": 3,
        "delete_partition": 3,
    }
    __slots__ = (
        "controller_id",
        "is_kraft_controller",
        "controller_epoch",
        "broker_epoch",
        "delete_partitions",
        "ungrouped_partitions",
        "topics",
        "topic_states",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        controller_id: int = 0,
        is_kraft_controller: bool = False,  # v4+
        controller_epoch: int = 0,
        broker_epoch: int = -1,  # v1+
        delete_partitions: bool = False,  # v0-2
        ungrouped_partitions: list[StopReplicaPartitionV0] = EMPTY,  # v0
        topics: list[StopReplicaTopicV1] = EMPTY,  # v1-2
        topic_states: list[StopReplicaTopicState] = EMPTY,  # v3+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.controller_id: int = controller_id
        self.is_kraft_controller: bool = is_kraft_controller
        self.controller_epoch: int = controller_epoch
        self.broker_epoch: int = broker_epoch
        self.delete_partitions: bool = delete_partitions
        self.ungrouped_partitions: list[StopReplicaPartitionV0] = (
            [] if ungrouped_partitions is EMPTY else ungrouped_partitions
        )
        self.topics: list[StopReplicaTopicV1] = [] if topics is EMPTY else topics
        self.topic_states: list[StopReplicaTopicState] = [] if topic_states is EMPTY else topic_states
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:  # noqa: C901 - flat: a line for each field
        out.int32(self.controller_id)
        if version >= 4:
            out.boolean(self.is_kraft_controller)
        elif self.is_kraft_controller:
            raise self.unsupported("is_kraft_controller", version)
        out.int32(self.controller_epoch)
        if version >= 1:
            out.int64(self.broker_epoch)
        if version <= 2:
            out.boolean(self.delete_partitions)
        elif self.delete_partitions:
            raise self.unsupported("delete_partitions", version)
        if version <= 0:
            out.array_length(len(self.ungrouped_partitions))
            for stop_replica_partition_v0 in self.ungrouped_partitions:
                stop_replica_partition_v0.encode(out, version)
        elif self.ungrouped_partitions:
            raise self.unsupported("ungrouped_partitions", version)
        if 1 <= version <= 2:
            out.array_length(len(self.topics))
            for stop_replica_topic_v1 in self.topics:
                stop_replica_topic_v1.encode(out, version)
        elif self.topics:
            raise self.unsupported("topics", version)
        if version >= 3:
            out.array_length(len(self.topic_states))
            for stop_replica_topic_state in self.topic_states:
                stop_replica_topic_state.encode(out, version)
        elif self.topic_states:
            raise self.unsupported("topic_states", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.controller_id = src.int32()
        self.is_kraft_controller = src.boolean() if version >= 4 else False
        self.controller_epoch = src.int32()
        self.broker_epoch = src.int64() if version >= 1 else -1
        self.delete_partitions = src.boolean() if version <= 2 else False
        self.ungrouped_partitions = src.structs(StopReplicaPartitionV0, version) if version <= 0 else []
        self.topics = src.structs(StopReplicaTopicV1, version) if 1 <= version <= 2 else []
        self.topic_states = src.structs(StopReplicaTopicState, version) if version >= 3 else []
        self.unknown_tags = src.tags()
        return self
