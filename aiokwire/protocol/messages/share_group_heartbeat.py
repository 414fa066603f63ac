"""ShareGroupHeartbeat (key 76), versions 1, flexible from 0.

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
    """Stands in `ShareGroupHeartbeatResponse.assignment`."""

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


class ShareGroupHeartbeatResponse(Response):
    """Answers `ShareGroupHeartbeatRequest`."""

    API: ClassVar[ApiKey] = ApiKey.SHARE_GROUP_HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(1, 1, flexible=0)
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


class ShareGroupHeartbeatRequest(Request[ShareGroupHeartbeatResponse]):
    """Answered by `ShareGroupHeartbeatResponse`."""

    API: ClassVar[ApiKey] = ApiKey.SHARE_GROUP_HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(1, 1, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[ShareGroupHeartbeatResponse]] = ShareGroupHeartbeatResponse
    __slots__ = ("group_id", "member_id", "member_epoch", "rack_id", "subscribed_topic_names", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.rack_id: str | None = rack_id
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.string(self.member_id)
        out.int32(self.member_epoch)
        out.nullable_string(self.rack_id)
        out.nullable_strings(self.subscribed_topic_names)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.member_id = src.string()
        self.member_epoch = src.int32()
        self.rack_id = src.nullable_string()
        self.subscribed_topic_names = src.nullable_strings()
        self.unknown_tags = src.tags()
        return self
