"""The responses of `AIOKafkaAdminClient`: named tuples with aiokafka's fields."""

from __future__ import annotations

from typing import Any, NamedTuple

from aiokwire.protocol.messages import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
    describe_groups,
    metadata,
)


class CreateTopicsResponse(NamedTuple):
    """`topic_errors`: (topic, error code, message) of each topic."""

    throttle_time_ms: int
    topic_errors: list[tuple[str, int, str | None]]


class DeleteTopicsResponse(NamedTuple):
    """`topic_error_codes`: (topic, error code) of each topic."""

    throttle_time_ms: int
    topic_error_codes: list[tuple[str | None, int]]


class CreatePartitionsResponse(NamedTuple):
    """`topic_errors`: (topic, error code, message) of each topic."""

    throttle_time_ms: int
    topic_errors: list[tuple[str, int, str | None]]


class DescribeConfigsResponse(NamedTuple):
    """`resources`: (error code, message, type, name, entries), an entry being (name, value, read-only,
    source, sensitive, synonyms)."""

    throttle_time_ms: int
    resources: list[tuple[int, str | None, int, str, list[tuple[Any, ...]]]]


class AlterConfigsResponse(NamedTuple):
    """`resources`: (error code, message, type, name)."""

    throttle_time_ms: int
    resources: list[tuple[int, str | None, int, str]]


class DescribeGroupsResponse(NamedTuple):
    """`groups`: (error code, group, state, protocol type, protocol, members), a member being (id, client
    id, host, metadata, assignment)."""

    throttle_time_ms: int
    groups: list[tuple[int, str, str, str, str, list[tuple[Any, ...]]]]


class MetadataResponse(NamedTuple):
    """`brokers`: (node id, host, port, rack); `topics`: (error code, topic, internal, partitions), a
    partition being (error code, number, leader, replicas, in-sync replicas, offline replicas)."""

    throttle_time_ms: int
    brokers: list[tuple[int, str, int, str | None]]
    cluster_id: str | None
    controller_id: int
    topics: list[tuple[int, str, bool, list[tuple[Any, ...]]]]

    def to_object(self) -> dict[str, Any]:
        """Return it as dictionaries."""
        return {
            "throttle_time_ms": self.throttle_time_ms,
            "brokers": [dict(zip(_BROKER, each, strict=True)) for each in self.brokers],
            "cluster_id": self.cluster_id,
            "controller_id": self.controller_id,
            "topics": [_topic_object(each) for each in self.topics],
        }


_BROKER = ("node_id", "host", "port", "rack")
_TOPIC = ("error_code", "topic", "is_internal")
_PARTITION = ("error_code", "partition", "leader", "replicas", "isr", "offline_replicas")


def _topic_object(topic: tuple[Any, ...]) -> dict[str, Any]:
    partitions = [dict(zip(_PARTITION, each, strict=True)) for each in topic[3]]
    return dict(zip(_TOPIC, topic, strict=False)) | {"partitions": partitions}


def created_topics(answer: create_topics.CreateTopicsResponse) -> CreateTopicsResponse:
    """Convert a response to CreateTopics."""
    found = [(each.name, each.error_code, each.error_message or None) for each in answer.topics]
    return CreateTopicsResponse(answer.throttle_time_ms, found)


def deleted_topics(answer: delete_topics.DeleteTopicsResponse) -> DeleteTopicsResponse:
    """Convert a response to DeleteTopics."""
    return DeleteTopicsResponse(answer.throttle_time_ms, [(each.name, each.error_code) for each in answer.responses])


def created_partitions(answer: create_partitions.CreatePartitionsResponse) -> CreatePartitionsResponse:
    """Convert a response to CreatePartitions."""
    found = [(each.name, each.error_code, each.error_message) for each in answer.results]
    return CreatePartitionsResponse(answer.throttle_time_ms, found)


def described_configs(answer: describe_configs.DescribeConfigsResponse) -> DescribeConfigsResponse:
    """Convert a response to DescribeConfigs."""
    found = [
        (each.error_code, each.error_message or None, each.resource_type, each.resource_name, _entries(each.configs))
        for each in answer.results
    ]
    return DescribeConfigsResponse(answer.throttle_time_ms, found)


def _entries(configs: list[describe_configs.DescribeConfigsResourceResult]) -> list[tuple[Any, ...]]:
    return [
        (
            each.name,
            each.value,
            each.read_only,
            each.config_source,
            each.is_sensitive,
            [(other.name, other.value, other.source) for other in each.synonyms],
        )
        for each in configs
    ]


def altered_configs(answer: alter_configs.AlterConfigsResponse) -> AlterConfigsResponse:
    """Convert a response to AlterConfigs."""
    found = [
        (each.error_code, each.error_message or None, each.resource_type, each.resource_name)
        for each in answer.responses
    ]
    return AlterConfigsResponse(answer.throttle_time_ms, found)


def described_groups(answer: describe_groups.DescribeGroupsResponse) -> DescribeGroupsResponse:
    """Convert a response to DescribeGroups."""
    found = [
        (each.error_code, each.group_id, each.group_state, each.protocol_type, each.protocol_data, _members(each))
        for each in answer.groups
    ]
    return DescribeGroupsResponse(answer.throttle_time_ms, found)


def _members(group: describe_groups.DescribedGroup) -> list[tuple[Any, ...]]:
    return [
        (each.member_id, each.client_id, each.client_host, bytes(each.member_metadata), bytes(each.member_assignment))
        for each in group.members
    ]


def described_cluster(answer: metadata.MetadataResponse) -> MetadataResponse:
    """Convert a response to Metadata."""
    brokers = [(each.node_id, each.host, each.port, each.rack) for each in answer.brokers]
    topics = [
        (each.error_code, each.name or "", each.is_internal, [_partition(one) for one in each.partitions])
        for each in answer.topics
    ]
    return MetadataResponse(answer.throttle_time_ms, brokers, answer.cluster_id, answer.controller_id, topics)


def _partition(found: metadata.MetadataResponsePartition) -> tuple[Any, ...]:
    return (
        found.error_code,
        found.partition_index,
        found.leader_id,
        list(found.replica_nodes),
        list(found.isr_nodes),
        list(found.offline_replicas),
    )
