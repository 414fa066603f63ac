"""AlterPartition (key 56), versions 0-3, flexible from 0.

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


class AlterPartitionResponsePartitionData(Struct):
    """Stands in `AlterPartitionResponseTopicData.partitions`."""

    __slots__ = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
        "isr",
        "leader_recovery_state",
        "partition_epoch",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] = EMPTY,
        leader_recovery_state: int = 0,  # v1+
        partition_epoch: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.isr: list[int] = [] if isr is EMPTY else isr
        self.leader_recovery_state: int = leader_recovery_state
        self.partition_epoch: int = partition_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int16(self.error_code)
        out.int32(self.leader_id)
        out.int32(self.leader_epoch)
        out.int32s(self.isr)
        if version >= 1:
            out.int8(self.leader_recovery_state)
        out.int32(self.partition_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.error_code = src.int16()
        self.leader_id = src.int32()
        self.leader_epoch = src.int32()
        self.isr = src.int32s()
        self.leader_recovery_state = src.int8() if version >= 1 else 0
        self.partition_epoch = src.int32()
        self.unknown_tags = src.tags()
        return self


class AlterPartitionResponseTopicData(Struct):
    """Stands in `AlterPartitionResponse.topics`."""

    __slots__ = ("topic_name", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",  # v0-1
        topic_id: bytes = ZERO_UUID,  # v2+
        partitions: list[AlterPartitionResponsePartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[AlterPartitionResponsePartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 1:
            out.string(self.topic_name)
        if version >= 2:
            out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for alter_partition_response_partition_data in self.partitions:
            alter_partition_response_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string() if version <= 1 else ""
        self.topic_id = src.uuid() if version >= 2 else ZERO_UUID
        self.partitions = src.structs(AlterPartitionResponsePartitionData, version)
        self.unknown_tags = src.tags()
        return self


class AlterPartitionResponse(Response):
    """Answers `AlterPartitionRequest`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_PARTITION
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=0)
    __slots__ = ("throttle_time_ms", "error_code", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[AlterPartitionResponseTopicData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: list[AlterPartitionResponseTopicData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.array_length(len(self.topics))
        for alter_partition_response_topic_data in self.topics:
            alter_partition_response_topic_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.topics = src.structs(AlterPartitionResponseTopicData, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class BrokerState(Struct):
    """Stands in `AlterPartitionRequestPartitionData.new_isr_with_epochs`."""

    __slots__ = ("broker_id", "broker_epoch", "unknown_tags")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        out.int64(self.broker_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.broker_epoch = src.int64()
        self.unknown_tags = src.tags()
        return self


class AlterPartitionRequestPartitionData(Struct):
    """Stands in `AlterPartitionRequestTopicData.partitions`."""

    __slots__ = (
        "partition_index",
        "leader_epoch",
        "new_isr",
        "new_isr_with_epochs",
        "leader_recovery_state",
        "partition_epoch",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] = EMPTY,  # v0-2
        new_isr_with_epochs: list[BrokerState] = EMPTY,  # v3+
        leader_recovery_state: int = 0,  # v1+
        partition_epoch: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.leader_epoch: int = leader_epoch
        self.new_isr: list[int] = [] if new_isr is EMPTY else new_isr
        self.new_isr_with_epochs: list[BrokerState] = [] if new_isr_with_epochs is EMPTY else new_isr_with_epochs
        self.leader_recovery_state: int = leader_recovery_state
        self.partition_epoch: int = partition_epoch
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int32(self.leader_epoch)
        if version <= 2:
            out.int32s(self.new_isr)
        elif self.new_isr:
            raise self.unsupported("new_isr", version)
        if version >= 3:
            out.array_length(len(self.new_isr_with_epochs))
            for broker_state in self.new_isr_with_epochs:
                broker_state.encode(out, version)
        elif self.new_isr_with_epochs:
            raise self.unsupported("new_isr_with_epochs", version)
        if version >= 1:
            out.int8(self.leader_recovery_state)
        elif self.leader_recovery_state != 0:
            raise self.unsupported("leader_recovery_state", version)
        out.int32(self.partition_epoch)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.leader_epoch = src.int32()
        self.new_isr = src.int32s() if version <= 2 else []
        self.new_isr_with_epochs = src.structs(BrokerState, version) if version >= 3 else []
        self.leader_recovery_state = src.int8() if version >= 1 else 0
        self.partition_epoch = src.int32()
        self.unknown_tags = src.tags()
        return self


class AlterPartitionRequestTopicData(Struct):
    """Stands in `AlterPartitionRequest.topics`."""

    __slots__ = ("topic_name", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_name: str = "",  # v0-1
        topic_id: bytes = ZERO_UUID,  # v2+
        partitions: list[AlterPartitionRequestPartitionData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[AlterPartitionRequestPartitionData] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 1:
            out.string(self.topic_name)
        if version >= 2:
            out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for alter_partition_request_partition_data in self.partitions:
            alter_partition_request_partition_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_name = src.string() if version <= 1 else ""
        self.topic_id = src.uuid() if version >= 2 else ZERO_UUID
        self.partitions = src.structs(AlterPartitionRequestPartitionData, version)
        self.unknown_tags = src.tags()
        return self


class AlterPartitionRequest(Request[AlterPartitionResponse]):
    """Answered by `AlterPartitionResponse`."""

    API: ClassVar[ApiKey] = ApiKey.ALTER_PARTITION
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 3, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 2
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("controller",)
    RESPONSE: ClassVar[type[AlterPartitionResponse]] = AlterPartitionResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "topic_id": 2,
        "new_isr_with_epochs": 3,
        "leader_recovery_state": 1,
    }
    __slots__ = ("broker_id", "broker_epoch", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[AlterPartitionRequestTopicData] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.topics: list[AlterPartitionRequestTopicData] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.broker_id)
        out.int64(self.broker_epoch)
        out.array_length(len(self.topics))
        for alter_partition_request_topic_data in self.topics:
            alter_partition_request_topic_data.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.broker_id = src.int32()
        self.broker_epoch = src.int64()
        self.topics = src.structs(AlterPartitionRequestTopicData, version)
        self.unknown_tags = src.tags()
        return self
