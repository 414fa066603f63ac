"""StreamsGroupHeartbeat (key 88), versions 0, flexible from 0.

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


class Status(Struct):
    """Stands in `StreamsGroupHeartbeatResponse.status`."""

    __slots__ = ("status_code", "status_detail", "unknown_tags")

    def __init__(
        self,
        *,
        status_code: int = 0,
        status_detail: str = "",
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.status_code: int = status_code
        self.status_detail: str = status_detail
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int8(self.status_code)
        out.string(self.status_detail)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.status_code = src.int8()
        self.status_detail = src.string()
        self.unknown_tags = src.tags()
        return self


class TaskIds(Struct):
    """Stands in `StreamsGroupHeartbeatResponse.active_tasks`."""

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


class Endpoint(Struct):
    """Stands in `EndpointToPartitions.user_endpoint`."""

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


class TopicPartition(Struct):
    """Stands in `EndpointToPartitions.active_partitions`."""

    __slots__ = ("topic", "partitions", "unknown_tags")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is EMPTY else partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.topic)
        out.int32s(self.partitions)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.topic = src.string()
        self.partitions = src.int32s()
        self.unknown_tags = src.tags()
        return self


class EndpointToPartitions(Struct):
    """Stands in `StreamsGroupHeartbeatResponse.partitions_by_user_endpoint`."""

    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions", "unknown_tags")

    def __init__(
        self,
        *,
        user_endpoint: Endpoint | None = None,
        active_partitions: list[TopicPartition] = EMPTY,
        standby_partitions: list[TopicPartition] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.user_endpoint: Endpoint = Endpoint() if user_endpoint is None else user_endpoint
        self.active_partitions: list[TopicPartition] = [] if active_partitions is EMPTY else active_partitions
        self.standby_partitions: list[TopicPartition] = [] if standby_partitions is EMPTY else standby_partitions
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        self.user_endpoint.encode(out, version)
        out.array_length(len(self.active_partitions))
        for topic_partition in self.active_partitions:
            topic_partition.encode(out, version)
        out.array_length(len(self.standby_partitions))
        for topic_partition in self.standby_partitions:
            topic_partition.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.user_endpoint = Endpoint.decode(src, version)
        self.active_partitions = src.structs(TopicPartition, version)
        self.standby_partitions = src.structs(TopicPartition, version)
        self.unknown_tags = src.tags()
        return self


class StreamsGroupHeartbeatResponse(Response):
    """Answers `StreamsGroupHeartbeatRequest`."""

    API: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag",
        "task_offset_interval_ms",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = EMPTY,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.acceptable_recovery_lag: int = acceptable_recovery_lag
        self.task_offset_interval_ms: int = task_offset_interval_ms
        self.status: list[Status] | None = [] if status is EMPTY else status
        self.active_tasks: list[TaskIds] | None = active_tasks
        self.standby_tasks: list[TaskIds] | None = standby_tasks
        self.warmup_tasks: list[TaskIds] | None = warmup_tasks
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.partitions_by_user_endpoint: list[EndpointToPartitions] | None = partitions_by_user_endpoint
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.throttle_time_ms)
        out.int16(self.error_code)
        out.nullable_string(self.error_message)
        out.string(self.member_id)
        out.int32(self.member_epoch)
        out.int32(self.heartbeat_interval_ms)
        out.int32(self.acceptable_recovery_lag)
        out.int32(self.task_offset_interval_ms)
        out.nullable_array_length(-1 if self.status is None else len(self.status))
        for status in self.status or ():
            status.encode(out, version)
        out.nullable_array_length(-1 if self.active_tasks is None else len(self.active_tasks))
        for task_ids in self.active_tasks or ():
            task_ids.encode(out, version)
        out.nullable_array_length(-1 if self.standby_tasks is None else len(self.standby_tasks))
        for task_ids in self.standby_tasks or ():
            task_ids.encode(out, version)
        out.nullable_array_length(-1 if self.warmup_tasks is None else len(self.warmup_tasks))
        for task_ids in self.warmup_tasks or ():
            task_ids.encode(out, version)
        out.int32(self.endpoint_information_epoch)
        out.nullable_array_length(
            -1 if self.partitions_by_user_endpoint is None else len(self.partitions_by_user_endpoint)
        )
        for endpoint_to_partitions in self.partitions_by_user_endpoint or ():
            endpoint_to_partitions.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.throttle_time_ms = src.int32()
        self.error_code = src.int16()
        self.error_message = src.nullable_string()
        self.member_id = src.string()
        self.member_epoch = src.int32()
        self.heartbeat_interval_ms = src.int32()
        self.acceptable_recovery_lag = src.int32()
        self.task_offset_interval_ms = src.int32()
        self.status = src.nullable_structs(Status, version)
        self.active_tasks = src.nullable_structs(TaskIds, version)
        self.standby_tasks = src.nullable_structs(TaskIds, version)
        self.warmup_tasks = src.nullable_structs(TaskIds, version)
        self.endpoint_information_epoch = src.int32()
        self.partitions_by_user_endpoint = src.nullable_structs(EndpointToPartitions, version)
        self.unknown_tags = src.tags()
        return self

    def error_codes(self) -> Iterator[int]:
        yield self.error_code


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


class CopartitionGroup(Struct):
    """Stands in `Subtopology.copartition_groups`."""

    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics", "unknown_tags")

    def __init__(
        self,
        *,
        source_topics: list[int] = EMPTY,
        source_topic_regex: list[int] = EMPTY,
        repartition_source_topics: list[int] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.source_topics: list[int] = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex: list[int] = [] if source_topic_regex is EMPTY else source_topic_regex
        self.repartition_source_topics: list[int] = (
            [] if repartition_source_topics is EMPTY else repartition_source_topics
        )
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int16s(self.source_topics)
        out.int16s(self.source_topic_regex)
        out.int16s(self.repartition_source_topics)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.source_topics = src.int16s()
        self.source_topic_regex = src.int16s()
        self.repartition_source_topics = src.int16s()
        self.unknown_tags = src.tags()
        return self


class Subtopology(Struct):
    """Stands in `Topology.subtopologies`."""

    __slots__ = (
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] = EMPTY,
        source_topic_regex: list[str] = EMPTY,
        state_changelog_topics: list[TopicInfo] = EMPTY,
        repartition_sink_topics: list[str] = EMPTY,
        repartition_source_topics: list[TopicInfo] = EMPTY,
        copartition_groups: list[CopartitionGroup] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.subtopology_id: str = subtopology_id
        self.source_topics: list[str] = [] if source_topics is EMPTY else source_topics
        self.source_topic_regex: list[str] = [] if source_topic_regex is EMPTY else source_topic_regex
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is EMPTY else state_changelog_topics
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is EMPTY else repartition_sink_topics
        self.repartition_source_topics: list[TopicInfo] = (
            [] if repartition_source_topics is EMPTY else repartition_source_topics
        )
        self.copartition_groups: list[CopartitionGroup] = [] if copartition_groups is EMPTY else copartition_groups
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.subtopology_id)
        out.strings(self.source_topics)
        out.strings(self.source_topic_regex)
        out.array_length(len(self.state_changelog_topics))
        for topic_info in self.state_changelog_topics:
            topic_info.encode(out, version)
        out.strings(self.repartition_sink_topics)
        out.array_length(len(self.repartition_source_topics))
        for topic_info in self.repartition_source_topics:
            topic_info.encode(out, version)
        out.array_length(len(self.copartition_groups))
        for copartition_group in self.copartition_groups:
            copartition_group.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.subtopology_id = src.string()
        self.source_topics = src.strings()
        self.source_topic_regex = src.strings()
        self.state_changelog_topics = src.structs(TopicInfo, version)
        self.repartition_sink_topics = src.strings()
        self.repartition_source_topics = src.structs(TopicInfo, version)
        self.copartition_groups = src.structs(CopartitionGroup, version)
        self.unknown_tags = src.tags()
        return self


class Topology(Struct):
    """Stands in `StreamsGroupHeartbeatRequest.topology`."""

    __slots__ = ("epoch", "subtopologies", "unknown_tags")

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] = EMPTY,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.epoch: int = epoch
        self.subtopologies: list[Subtopology] = [] if subtopologies is EMPTY else subtopologies
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.int32(self.epoch)
        out.array_length(len(self.subtopologies))
        for subtopology in self.subtopologies:
            subtopology.encode(out, version)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.epoch = src.int32()
        self.subtopologies = src.structs(Subtopology, version)
        self.unknown_tags = src.tags()
        return self


class TaskOffset(Struct):
    """Stands in `StreamsGroupHeartbeatRequest.task_offsets`."""

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


class StreamsGroupHeartbeatRequest(Request[StreamsGroupHeartbeatResponse]):
    """Answered by `StreamsGroupHeartbeatResponse`."""

    API: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_HEARTBEAT
    VERSIONS: ClassVar[VersionRange] = VersionRange(0, 0, flexible=0)
    SERVED_FROM: ClassVar[int | None] = 0
    UNSTABLE_FROM: ClassVar[int | None] = None
    LISTENERS: ClassVar[tuple[str, ...]] = ("broker",)
    RESPONSE: ClassVar[type[StreamsGroupHeartbeatResponse]] = StreamsGroupHeartbeatResponse
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
        "unknown_tags",
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
        unknown_tags: UnknownTags = (),
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.endpoint_information_epoch: int = endpoint_information_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.topology: Topology | None = topology
        self.active_tasks: list[TaskIds] | None = active_tasks
        self.standby_tasks: list[TaskIds] | None = standby_tasks
        self.warmup_tasks: list[TaskIds] | None = warmup_tasks
        self.process_id: str | None = process_id
        self.user_endpoint: Endpoint | None = user_endpoint
        self.client_tags: list[KeyValue] | None = client_tags
        self.task_offsets: list[TaskOffset] | None = task_offsets
        self.task_end_offsets: list[TaskOffset] | None = task_end_offsets
        self.shutdown_application: bool = shutdown_application
        self.unknown_tags: UnknownTags = unknown_tags

    def encode(self, out: PlainWriter, version: int) -> None:
        out.string(self.group_id)
        out.string(self.member_id)
        out.int32(self.member_epoch)
        out.int32(self.endpoint_information_epoch)
        out.nullable_string(self.instance_id)
        out.nullable_string(self.rack_id)
        out.int32(self.rebalance_timeout_ms)
        out.present(self.topology is not None)
        if self.topology is not None:
            self.topology.encode(out, version)
        out.nullable_array_length(-1 if self.active_tasks is None else len(self.active_tasks))
        for task_ids in self.active_tasks or ():
            task_ids.encode(out, version)
        out.nullable_array_length(-1 if self.standby_tasks is None else len(self.standby_tasks))
        for task_ids in self.standby_tasks or ():
            task_ids.encode(out, version)
        out.nullable_array_length(-1 if self.warmup_tasks is None else len(self.warmup_tasks))
        for task_ids in self.warmup_tasks or ():
            task_ids.encode(out, version)
        out.nullable_string(self.process_id)
        out.present(self.user_endpoint is not None)
        if self.user_endpoint is not None:
            self.user_endpoint.encode(out, version)
        out.nullable_array_length(-1 if self.client_tags is None else len(self.client_tags))
        for key_value in self.client_tags or ():
            key_value.encode(out, version)
        out.nullable_array_length(-1 if self.task_offsets is None else len(self.task_offsets))
        for task_offset in self.task_offsets or ():
            task_offset.encode(out, version)
        out.nullable_array_length(-1 if self.task_end_offsets is None else len(self.task_end_offsets))
        for task_offset in self.task_end_offsets or ():
            task_offset.encode(out, version)
        out.boolean(self.shutdown_application)
        out.tags(self.unknown_tags)

    @classmethod
    def decode(cls, src: PlainReader, version: int) -> Self:
        self = cls.__new__(cls)
        self.group_id = src.string()
        self.member_id = src.string()
        self.member_epoch = src.int32()
        self.endpoint_information_epoch = src.int32()
        self.instance_id = src.nullable_string()
        self.rack_id = src.nullable_string()
        self.rebalance_timeout_ms = src.int32()
        self.topology = Topology.decode(src, version) if src.present() else None
        self.active_tasks = src.nullable_structs(TaskIds, version)
        self.standby_tasks = src.nullable_structs(TaskIds, version)
        self.warmup_tasks = src.nullable_structs(TaskIds, version)
        self.process_id = src.nullable_string()
        self.user_endpoint = Endpoint.decode(src, version) if src.present() else None
        self.client_tags = src.nullable_structs(KeyValue, version)
        self.task_offsets = src.nullable_structs(TaskOffset, version)
        self.task_end_offsets = src.nullable_structs(TaskOffset, version)
        self.shutdown_application = src.boolean()
        self.unknown_tags = src.tags()
        return self

    def broker_wait_ms(self) -> int:
        return max(self.rebalance_timeout_ms, 0)
