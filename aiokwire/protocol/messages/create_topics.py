"""CreateTopics (key 19), versions 0-7, flexible from 5.

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


class CreatableTopicConfigs(Struct):
    """Stands in `CreatableTopicResult.configs`."""

    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.nullable_string(self.value)
        out.boolean(self.read_only)
        out.int8(self.config_source)
        out.boolean(self.is_sensitive)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.value = src.nullable_string()
        self.read_only = src.boolean()
        self.config_source = src.int8()
        self.is_sensitive = src.boolean()
        self.unknown_tags = src.tags()
        return self


class CreatableTopicResult(Struct):
    """Stands in `CreateTopicsResponse.topics`."""

    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "num_partitions",
        "replication_factor",
        "configs",
        "topic_config_error_code",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,  # v7+
        error_code: int = 0,
        error_message: str | None = "",  # v1+
        num_partitions: int = -1,  # v5+
        replication_factor: int = -1,  # v5+
        configs: list[CreatableTopicConfigs] | None = EMPTY,  # v5+
        topic_config_error_code: int = 0,  # v5+, tag 0
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.configs: list[CreatableTopicConfigs] | None = [] if configs is EMPTY else configs
        self.topic_config_error_code: int = topic_config_error_code
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        if version >= 7:
            out.uuid(self.topic_id)
        out.int16(self.error_code)
        if version >= 1:
            out.nullable_string(self.error_message)
        if version >= 5:
            out.int32(self.num_partitions)
            out.int16(self.replication_factor)
            out.nullable_array_length(-1 if self.configs is None else len(self.configs))
            for creatable_topic_configs in self.configs or ():
                creatable_topic_configs.encode(out, version)
        known: list[tuple[int, PlainWriter]] = []
        if self.topic_config_error_code != 0 and version >= 5:
            field = out.nested()
            field.int16(self.topic_config_error_code)
            known.append((0, field))
        out.tags(self.unknown_tags, known)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.topic_id = src.uuid() if version >= 7 else ZERO_UUID
        self.error_code = src.int16()
        self.error_message = src.nullable_string() if version >= 1 else ""
        if version >= 5:
            self.num_partitions = src.int32()
            self.replication_factor = src.int16()
            self.configs = src.nullable_structs(CreatableTopicConfigs, version)
        else:
            self.num_partitions = -1
            self.replication_factor = -1
            self.configs = []
        self.topic_config_error_code = 0
        unknown = []
        for tag, field in src.tagged():
            if tag == 0:
                self.topic_config_error_code = field.int16()
            else:
                unknown.append((tag, field.rest()))
            field.end()
        self.unknown_tags = tuple(unknown)
        return self


class CreateTopicsResponse(Response):
    """Answers `CreateTopicsRequest`."""

    API: ClassVar[ApiKey] = ApiKey.CREATE_TOPICS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 7, flexible=5)
    __slots__ = ("throttle_time_ms", "topics", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # v2+
        topics: list[CreatableTopicResult] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[CreatableTopicResult] = [] if topics is EMPTY else topics
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        if version >= 2:
            out.int32(self.throttle_time_ms)
        out.array_length(len(self.topics))
        for creatable_topic_result in self.topics:
            creatable_topic_result.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32() if version >= 2 else 0
        self.topics = src.structs(CreatableTopicResult, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.topics:
            yield entry.error_code


class CreatableReplicaAssignment(Struct):
    """Stands in `CreatableTopic.assignments`."""

    __slots__ = ("partition_index", "broker_ids", "unknown_tags")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.broker_ids: list[int] = [] if broker_ids is EMPTY else broker_ids
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.partition_index)
        out.int32s(self.broker_ids)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.partition_index = src.int32()
        self.broker_ids = src.int32s()
        self.unknown_tags = src.tags()
        return self


class CreatableTopicConfig(Struct):
    """Stands in `CreatableTopic.configs`."""

    __slots__ = ("name", "value", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.nullable_string(self.value)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.value = src.nullable_string()
        self.unknown_tags = src.tags()
        return self


class CreatableTopic(Struct):
    """Stands in `CreateTopicsRequest.topics`."""

    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = EMPTY,
        configs: list[CreatableTopicConfig] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.assignments: list[CreatableReplicaAssignment] = [] if assignments is EMPTY else assignments
        self.configs: list[CreatableTopicConfig] = [] if configs is EMPTY else configs
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int32(self.num_partitions)
        out.int16(self.replication_factor)
        out.array_length(len(self.assignments))
        for creatable_replica_assignment in self.assignments:
            creatable_replica_assignment.encode(out, version)
        out.array_length(len(self.configs))
        for creatable_topic_config in self.configs:
            creatable_topic_config.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.num_partitions = src.int32()
        self.replication_factor = src.int16()
        self.assignments = src.structs(CreatableReplicaAssignment, version)
        self.configs = src.structs(CreatableTopicConfig, version)
        self.unknown_tags = src.tags()
        return self


class CreateTopicsRequest(Request[CreateTopicsResponse]):
    """Answered by `CreateTopicsResponse`."""

    API: ClassVar[ApiKey] = ApiKey.CREATE_TOPICS
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 7, flexible=5)
    SERVED_FROM: ClassVar[int | None] = 2
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker", "controller")
    RESPONSE: ClassVar[type[CreateTopicsResponse]] = CreateTopicsResponse
    FIRST_VERSION_WITH: ClassVar[Mapping[str, int]] = {"validate_only": 1}
    __slots__ = ("topics", "timeout_ms", "validate_only", "unknown_tags")

    def __init__(
        self,
        *,
        topics: list[CreatableTopic] = EMPTY,
        timeout_ms: int = 60000,
        validate_only: bool = False,  # v1+
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topics: list[CreatableTopic] = [] if topics is EMPTY else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.topics))
        for creatable_topic in self.topics:
            creatable_topic.encode(out, version)
        out.int32(self.timeout_ms)
        if version >= 1:
            out.boolean(self.validate_only)
        elif self.validate_only:
            raise self.unsupported("validate_only", version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topics = src.structs(CreatableTopic, version)
        self.timeout_ms = src.int32()
        self.validate_only = src.boolean() if version >= 1 else False
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.timeout_ms, 0)
