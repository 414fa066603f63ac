"""ConsumerGroupHeartbeat (key 68), versions 0-1, flexible from 0.

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


class TopicPartitions(Struct):
    """Stands in `Assignment.topic_partitions`."""

    __slots__ = ("topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.uuid(self.topic_id)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_id = src.uuid()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class Assignment(Struct):
    """Stands in `ConsumerGroupHeartbeatResponse.assignment`."""

    __slots__ = ("topic_partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic_partitions: list[TopicPartitions] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is EMPTY else topic_partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.topic_partitions))
        for topic_partitions in self.topic_partitions:
            topic_partitions.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic_partitions = src.structs(TopicPartitions, version)
        self.unknown_tags = src.tags()
        return self


class ConsumerGroupHeartbeatResponse(Response):
    """Answers `ConsumerGroupHeartbeatRequest`."""

    API: ClassVar[ApiKey] = ApiKey.CONSUMER_GROUP_HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.assignment: Assignment | None = assignment
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.nullable_string(self.member_id)
        out.int32(self.member_epoch)
        out.int32(self.heartbeat_interval_ms)
        out.present(self.assignment is not None)
        if self.assignment is not None:
            self.assignment.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.member_id = src.nullable_string()
        self.member_epoch = src.int32()
        self.heartbeat_interval_ms = src.int32()
        self.assignment = Assignment.decode(src, version) if src.present() else None
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


class ConsumerGroupHeartbeatRequest(Request[ConsumerGroupHeartbeatResponse]):
    """Answered by `ConsumerGroupHeartbeatResponse`."""

    API: ClassVar[ApiKey] = ApiKey.CONSUMER_GROUP_HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ConsumerGroupHeartbeatResponse]] = ConsumerGroupHeartbeatResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"subscribed_topic_regex": 1}
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,  # v1+
        server_assignor: str | None = None,
        topic_partitions: list[TopicPartitions] | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.server_assignor: str | None = server_assignor
        self.topic_partitions: list[TopicPartitions] | None = topic_partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.string(self.member_id)
        out.int32(self.member_epoch)
        out.nullable_string(self.instance_id)
        out.nullable_string(self.rack_id)
        out.int32(self.rebalance_timeout_ms)
        out.nullable_strings(self.subscribed_topic_names)
        if version >= 1:
            out.nullable_string(self.subscribed_topic_regex)
        elif self.subscribed_topic_regex is not None:
            raise self.unsupported("subscribed_topic_regex", version)
        out.nullable_string(self.server_assignor)
        out.nullable_array_length(-1 if self.topic_partitions is None else len(self.topic_partitions))
        for topic_partitions in self.topic_partitions or ():
            topic_partitions.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.member_id = src.string()
        self.member_epoch = src.int32()
        self.instance_id = src.nullable_string()
        self.rack_id = src.nullable_string()
        self.rebalance_timeout_ms = src.int32()
        self.subscribed_topic_names = src.nullable_strings()
        self.subscribed_topic_regex = src.nullable_string() if version >= 1 else None
        self.server_assignor = src.nullable_string()
        self.topic_partitions = src.nullable_structs(TopicPartitions, version)
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.rebalance_timeout_ms, 0)

    def coordinator_key(self) -> str:
        return self.group_id
