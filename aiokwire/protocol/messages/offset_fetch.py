"""OffsetFetch (key 9), versions 0-10, flexible from 6.

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


class OffsetFetchResponsePartition(Struct):
    """Stands in `OffsetFetchResponseTopic.partitions`."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # v5+
        metadata: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.committed_offset)
        if version >= 5:
            out.int32(self.committed_leader_epoch)
        out.nullable_string(self.metadata)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.committed_offset = src.int64()
        self.committed_leader_epoch = src.int32() if version >= 5 else -1
        self.metadata = src.nullable_string()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class OffsetFetchResponseTopic(Struct):
    """Stands in `OffsetFetchResponse.topics`."""

    __slots__ = ("name", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetFetchResponsePartition] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.array_length(len(self.partitions))
        for offset_fetch_response_partition in self.partitions:
            offset_fetch_response_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.structs(OffsetFetchResponsePartition, version)
        self.unknown_tags = src.tags()
        return self


class OffsetFetchResponsePartitions(Struct):
    """Stands in `OffsetFetchResponseTopics.partitions`."""

    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int64(self.committed_offset)
        out.int32(self.committed_leader_epoch)
        out.nullable_string(self.metadata)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.committed_offset = src.int64()
        self.committed_leader_epoch = src.int32()
        self.metadata = src.nullable_string()
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class OffsetFetchResponseTopics(Struct):
    """Stands in `OffsetFetchResponseGroup.topics`."""

    __slots__ = ("name", "topic_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",  # v8-9
        topic_id: bytes = ZERO_UUID,  # v10+
        partitions: list[OffsetFetchResponsePartitions] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetFetchResponsePartitions] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 9:
            out.string(self.name)
        if version >= 10:
            out.uuid(self.topic_id)
        out.array_length(len(self.partitions))
        for offset_fetch_response_partitions in self.partitions:
            offset_fetch_response_partitions.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string() if version <= 9 else ""
        self.topic_id = src.uuid() if version >= 10 else ZERO_UUID
        self.partitions = src.structs(OffsetFetchResponsePartitions, version)
        self.unknown_tags = src.tags()
        return self


class OffsetFetchResponseGroup(Struct):
    """Stands in `OffsetFetchResponse.groups`."""

    __slots__ = ("group_id", "topics", "error_code", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] = EMPTY,
        error_code: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchResponseTopics] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.array_length(len(self.topics))
        for offset_fetch_response_topics in self.topics:
            offset_fetch_response_topics.encode(out, version)
        out.int16(self.error_code)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.topics = src.structs(OffsetFetchResponseTopics, version)
        self.error_code = src.int16()
        self.unknown_tags = src.tags()
        return self


class OffsetFetchResponse(Response):
    """Answers `OffsetFetchRequest`."""

    API: ClassVar[ApiKey] = ApiKey.OFFSET_FETCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 10, flexible=6)
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v3+
        topics: list[OffsetFetchResponseTopic] = EMPTY,  # v0-7
        error_code: int = 0,  # v2-7
        groups: list[OffsetFetchResponseGroup] = EMPTY,  # v8+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetFetchResponseTopic] = [] if topics is EMPTY else topics
        self.error_code: int = error_code
        self.groups: list[OffsetFetchResponseGroup] = [] if groups is EMPTY else groups
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 3:
            out.int32(self.throttle_time_ms)
        if version <= 7:
            out.array_length(len(self.topics))
            for offset_fetch_response_topic in self.topics:
                offset_fetch_response_topic.encode(out, version)
        elif self.topics:
            raise self.unsupported("topics", version)
        if 2 <= version <= 7:
            out.int16(self.error_code)
        if version >= 8:
            out.array_length(len(self.groups))
            for offset_fetch_response_group in self.groups:
                offset_fetch_response_group.encode(out, version)
        elif self.groups:
            raise self.unsupported("groups", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 3 else 0
        self.topics = src.structs(OffsetFetchResponseTopic, version) if version <= 7 else []
        self.error_code = src.int16() if 2 <= version <= 7 else 0
        self.groups = src.structs(OffsetFetchResponseGroup, version) if version >= 8 else []
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code
        for entry in self.groups:
            yield entry.error_code


class OffsetFetchRequestTopic(Struct):
    """Stands in `OffsetFetchRequest.topics`."""

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


class OffsetFetchRequestTopics(Struct):
    """Stands in `OffsetFetchRequestGroup.topics`."""

    __slots__ = ("name", "topic_id", "partition_indexes", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",  # v8-9
        topic_id: bytes = ZERO_UUID,  # v10+
        partition_indexes: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_indexes: list[int] = [] if partition_indexes is EMPTY else partition_indexes
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 9:
            out.string(self.name)
        if version >= 10:
            out.uuid(self.topic_id)
        out.int32s(self.partition_indexes)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string() if version <= 9 else ""
        self.topic_id = src.uuid() if version >= 10 else ZERO_UUID
        self.partition_indexes = src.int32s()
        self.unknown_tags = src.tags()
        return self


class OffsetFetchRequestGroup(Struct):
    """Stands in `OffsetFetchRequest.groups`."""

    __slots__ = ("group_id", "member_id", "member_epoch", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,  # v9+
        member_epoch: int = -1,  # v9+
        topics: list[OffsetFetchRequestTopics] | None = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.topics: list[OffsetFetchRequestTopics] | None = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        if version >= 9:
            out.nullable_string(self.member_id)
            out.int32(self.member_epoch)
        out.nullable_array_length(-1 if self.topics is None else len(self.topics))
        for offset_fetch_request_topics in self.topics or ():
            offset_fetch_request_topics.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        if version >= 9:
            self.member_id = src.nullable_string()
            self.member_epoch = src.int32()
        else:
            self.member_id = None
            self.member_epoch = -1
        self.topics = src.nullable_structs(OffsetFetchRequestTopics, version)
        self.unknown_tags = src.tags()
        return self


class OffsetFetchRequest(Request[OffsetFetchResponse]):
    """Answered by `OffsetFetchResponse`."""

    API: ClassVar[ApiKey] = ApiKey.OFFSET_FETCH
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 10, flexible=6)
    SERVED_FROM: ClassVar[int | None] = 1
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[OffsetFetchResponse]] = OffsetFetchResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {
        "groups": 8,
        "member_id": 9,
        "member_epoch": 9,
        "topic_id": 10,
        "require_stable": 7,
    }
    __slots__ = ("group_id", "topics", "groups", "require_stable", "unknown_tags")

    def __init__(
        self,
        *,
        group_id: str = "",  # v0-7
        topics: list[OffsetFetchRequestTopic] | None = EMPTY,  # v0-7
        groups: list[OffsetFetchRequestGroup] = EMPTY,  # v8+
        require_stable: bool = False,  # v7+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchRequestTopic] | None = [] if topics is EMPTY else topics
        self.groups: list[OffsetFetchRequestGroup] = [] if groups is EMPTY else groups
        self.require_stable: bool = require_stable
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version <= 7:
            out.string(self.group_id)
            if self.topics is None and not 2 <= version <= 7:
                raise self.unsupported("topics", version)
            out.nullable_array_length(-1 if self.topics is None else len(self.topics))
            for offset_fetch_request_topic in self.topics or ():
                offset_fetch_request_topic.encode(out, version)
        elif self.group_id:
            raise self.unsupported("group_id", version)
        elif self.topics is None or self.topics:
            raise self.unsupported("topics", version)
        if version >= 8:
            out.array_length(len(self.groups))
            for offset_fetch_request_group in self.groups:
                offset_fetch_request_group.encode(out, version)
        elif self.groups:
            raise self.unsupported("groups", version)
        if version >= 7:
            out.boolean(self.require_stable)
        elif self.require_stable:
            raise self.unsupported("require_stable", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        if version <= 7:
            self.group_id = src.string()
            self.topics = (
                src.nullable_structs(OffsetFetchRequestTopic, version)
                if 2 <= version <= 7
                else src.structs(OffsetFetchRequestTopic, version)
            )
        else:
            self.group_id = ""
            self.topics = []
        self.groups = src.structs(OffsetFetchRequestGroup, version) if version >= 8 else []
        self.require_stable = src.boolean() if version >= 7 else False
        self.unknown_tags = src.tags()
        return self

    def coordinator_key(self) -> str:
        return self.group_id or next((entry.group_id for entry in self.groups), "")
