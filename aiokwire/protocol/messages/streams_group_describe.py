"""StreamsGroupDescribe (key 89), versions 0, flexible from 0.

Generated from the definitions of Kafka 4.3.1 and 3.9.1 by `make generate`; do not edit.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class KeyValue(Struct):
    """Stands in `TopicInfo.topic_configs`."""

    __slots__ = ("key", "value", "unknown_tags")

    def __init__(
        self,
        *,
        key: str = "",
        value: str = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.key: str = key
        self.value: str = value
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.key)
        out.string(self.value)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.key = src.string()
        self.value = src.string()
        self.unknown_tags = src.tags()
        return self


class TopicInfo(Struct):
    """Stands in `Subtopology.state_changelog_topics`."""

    __slots__ = ("name", "partitions", "replication_factor", "topic_configs", "unknown_tags")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.name: str = name
        self.partitions: int = partitions
        self.replication_factor: int = replication_factor
        self.topic_configs: list[KeyValue] = [] if topic_configs is EMPTY else topic_configs
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.name)
        out.int32(self.partitions)
        out.int16(self.replication_factor)
        out.array_length(len(self.topic_configs))
        for key_value in self.topic_configs:
            key_value.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.name = src.string()
        self.partitions = src.int32()
        self.replication_factor = src.int16()
        self.topic_configs = src.structs(KeyValue, version)
        self.unknown_tags = src.tags()
        return self


class Subtopology(Struct):
    """Stands in `Topology.subtopologies`."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is EMPTY else source_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_source_topics: list[TopicInfo] = (
            [] if repartition_source_topics is EMPTY else repartition_source_topics
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.subtopology_id)
        out.strings(self.source_topics)
        out.strings(self.repartition_sink_topics)
        out.array_length(len(self.state_changelog_topics))
        for topic_info in self.state_changelog_topics:
            topic_info.encode(out, version)
        out.array_length(len(self.repartition_source_topics))
        for topic_info in self.repartition_source_topics:
            topic_info.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.subtopology_id = src.string()
        self.source_topics = src.strings()
        self.repartition_sink_topics = src.strings()
        self.state_changelog_topics = src.structs(TopicInfo, version)
        self.repartition_source_topics = src.structs(TopicInfo, version)
        self.unknown_tags = src.tags()
        return self


class Topology(Struct):
    """Stands in `DescribedGroup.topology`."""

    __slots__ = ("epoch", "subtopologies", "unknown_tags")

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[Subtopology] | None = subtopologies
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.epoch)
        out.nullable_array_length(-1 if self.subtopologies is None else len(self.subtopologies))
        for subtopology in self.subtopologies or ():
            subtopology.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.epoch = src.int32()
        self.subtopologies = src.nullable_structs(Subtopology, version)
        self.unknown_tags = src.tags()
        return self


class Endpoint(Struct):
    """Stands in `Member.user_endpoint`."""

    __slots__ = ("host", "port", "unknown_tags")

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.host)
        out.uint16(self.port)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.host = src.string()
        self.port = src.uint16()
        self.unknown_tags = src.tags()
        return self


class TaskOffset(Struct):
    """Stands in `Member.task_offsets`."""

    __slots__ = ("subtopology_id", "partition", "offset", "unknown_tags")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partition: int = partition
        self.offset: int = offset
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.subtopology_id)
        out.int32(self.partition)
        out.int64(self.offset)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.subtopology_id = src.string()
        self.partition = src.int32()
        self.offset = src.int64()
        self.unknown_tags = src.tags()
        return self


class TaskIds(Struct):
    """Stands in `Assignment.active_tasks`."""

    __slots__ = ("subtopology_id", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.subtopology_id)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.subtopology_id = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class Assignment(Struct):
    """Stands in `Member.assignment`."""

    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks", "unknown_tags")

    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] = EMPTY,
        standby_tasks: list[TaskIds] = EMPTY,
        warmup_tasks: list[TaskIds] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.active_tasks: list[TaskIds] = [] if active_tasks is EMPTY else active_tasks
        self.standby_tasks: list[TaskIds] = [] if standby_tasks is EMPTY else standby_tasks
        self.warmup_tasks: list[TaskIds] = [] if warmup_tasks is EMPTY else warmup_tasks
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.array_length(len(self.active_tasks))
        for task_ids in self.active_tasks:
            task_ids.encode(out, version)
        out.array_length(len(self.standby_tasks))
        for task_ids in self.standby_tasks:
            task_ids.encode(out, version)
        out.array_length(len(self.warmup_tasks))
        for task_ids in self.warmup_tasks:
            task_ids.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.active_tasks = src.structs(TaskIds, version)
        self.standby_tasks = src.structs(TaskIds, version)
        self.warmup_tasks = src.structs(TaskIds, version)
        self.unknown_tags = src.tags()
        return self


class Member(Struct):
    """Stands in `DescribedGroup.members`."""

    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = EMPTY,
        task_offsets: list[TaskOffset] = EMPTY,
        task_end_offsets: list[TaskOffset] = EMPTY,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.client_id: str = client_id
        self.client_host: str = client_host
        self.topology_epoch: int = topology_epoch
        self.process_id: str = process_id
        self.user_endpoint: Endpoint | None = user_endpoint
        self.client_tags: list[KeyValue] = [] if client_tags is EMPTY else client_tags
        self.task_offsets: list[TaskOffset] = [] if task_offsets is EMPTY else task_offsets
        self.task_end_offsets: list[TaskOffset] = [] if task_end_offsets is EMPTY else task_end_offsets
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        self.target_assignment: Assignment = Assignment() if target_assignment is None else target_assignment
        self.is_classic: bool = is_classic
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.member_id)
        out.int32(self.member_epoch)
        out.nullable_string(self.instance_id)
        out.nullable_string(self.rack_id)
        out.string(self.client_id)
        out.string(self.client_host)
        out.int32(self.topology_epoch)
        out.string(self.process_id)
        out.present(self.user_endpoint is not None)
        if self.user_endpoint is not None:
            self.user_endpoint.encode(out, version)
        out.array_length(len(self.client_tags))
        for key_value in self.client_tags:
            key_value.encode(out, version)
        out.array_length(len(self.task_offsets))
        for task_offset in self.task_offsets:
            task_offset.encode(out, version)
        out.array_length(len(self.task_end_offsets))
        for task_offset in self.task_end_offsets:
            task_offset.encode(out, version)
        self.assignment.encode(out, version)
        self.target_assignment.encode(out, version)
        out.boolean(self.is_classic)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.member_id = src.string()
        self.member_epoch = src.int32()
        self.instance_id = src.nullable_string()
        self.rack_id = src.nullable_string()
        self.client_id = src.string()
        self.client_host = src.string()
        self.topology_epoch = src.int32()
        self.process_id = src.string()
        self.user_endpoint = Endpoint.decode(src, version) if src.present() else None
        self.client_tags = src.structs(KeyValue, version)
        self.task_offsets = src.structs(TaskOffset, version)
        self.task_end_offsets = src.structs(TaskOffset, version)
        self.assignment = Assignment.decode(src, version)
        self.target_assignment = Assignment.decode(src, version)
        self.is_classic = src.boolean()
        self.unknown_tags = src.tags()
        return self


class DescribedGroup(Struct):
    """Stands in `StreamsGroupDescribeResponse.groups`."""

    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] = EMPTY,
        authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.group_id: str = group_id
        self.group_state: str = group_state
        self.group_epoch: int = group_epoch
        self.assignment_epoch: int = assignment_epoch
        self.topology: Topology | None = topology
        self.members: list[Member] = [] if members is EMPTY else members
        self.authorized_operations: int = authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.string(self.group_id)
        out.string(self.group_state)
        out.int32(self.group_epoch)
        out.int32(self.assignment_epoch)
        out.present(self.topology is not None)
        if self.topology is not None:
            self.topology.encode(out, version)
        out.array_length(len(self.members))
        for member in self.members:
            member.encode(out, version)
        out.int32(self.authorized_operations)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.group_id = src.string()
        self.group_state = src.string()
        self.group_epoch = src.int32()
        self.assignment_epoch = src.int32()
        self.topology = Topology.decode(src, version) if src.present() else None
        self.members = src.structs(Member, version)
        self.authorized_operations = src.int32()
        self.unknown_tags = src.tags()
        return self


class StreamsGroupDescribeResponse(Response):
    """Answers `StreamsGroupDescribeRequest`."""

    API: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_DESCRIBE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = ("throttle_time_ms", "groups", "unknown_tags")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribedGroup] = [] if groups is EMPTY else groups
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.array_length(len(self.groups))
        for described_group in self.groups:
            described_group.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.groups = src.structs(DescribedGroup, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        for entry in self.groups:
            yield entry.error_code


class StreamsGroupDescribeRequest(Request[StreamsGroupDescribeResponse]):
    """Answered by `StreamsGroupDescribeResponse`."""

    API: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_DESCRIBE
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[StreamsGroupDescribeResponse]] = StreamsGroupDescribeResponse
    __slots__ = ("group_ids", "include_authorized_operations", "unknown_tags")

    def __init__(
        self,
        *,
        group_ids: list[str] = EMPTY,
        include_authorized_operations: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is EMPTY else group_ids
        self.include_authorized_operations: bool = include_authorized_operations
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.strings(self.group_ids)
        out.boolean(self.include_authorized_operations)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_ids = src.strings()
        self.include_authorized_operations = src.boolean()
        self.unknown_tags = src.tags()
        return self
