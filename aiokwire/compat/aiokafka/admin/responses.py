"""The responses of `AIOKafkaAdminClient`: named tuples with aiokafka's fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from aiokwire.protocol.messages import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
    describe_groups,
    metadata,
)

# The names of the items of a response, in order; a pair names a list of items.
Names = Sequence["str | tuple[str, Names]"]

_TOPIC_ERROR: Final[Names] = ("topic", "error_code", "error_message")
_SYNONYM: Final[Names] = ("config_name", "config_value", "config_source")
_ENTRY: Final[Names] = (
    "config_names",
    "config_value",
    "read_only",
    "config_source",
    "is_sensitive",
    ("config_synonyms", _SYNONYM),
)
_ALTERED: Final[Names] = ("error_code", "error_message", "resource_type", "resource_name")
_MEMBER: Final[Names] = ("member_id", "client_id", "client_host", "member_metadata", "member_assignment")
_GROUP: Final[Names] = ("error_code", "group", "state", "protocol_type", "protocol", ("members", _MEMBER))
_BROKER: Final[Names] = ("node_id", "host", "port", "rack")
_PARTITION: Final[Names] = ("error_code", "partition", "leader", "replicas", "isr", "offline_replicas")
_TOPIC: Final[Names] = ("error_code", "topic", "is_internal", ("partitions", _PARTITION))


def _object(names: Names, values: Iterable[Any]) -> dict[str, Any]:
    """Return values by their names."""
    found: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        if isinstance(name, str):
            found[name] = value
        else:
            found[name[0]] = [_object(name[1], each) for each in value]
    return found


class CreateTopicsResponse(NamedTuple):
    """`topic_errors`: (topic, error code, message) of each topic."""

    throttle_time_ms: int
    topic_errors: list[tuple[str, int, str | None]]

    def to_object(self) -> dict[str, Any]:
        """Return it as dictionaries."""
        return _object(("throttle_time_ms", ("topic_errors", _TOPIC_ERROR)), self)


class DeleteTopicsResponse(NamedTuple):
    """`topic_error_codes`: (topic, error code) of each topic."""

    throttle_time_ms: int
    topic_error_codes: list[tuple[str | None, int]]

    def to_object(self) -> dict[str, Any]:
        """Return it as dictionaries."""
        return _object(("throttle_time_ms", ("topic_error_codes", _TOPIC_ERROR[:2])), self)


class CreatePartitionsResponse(NamedTuple):
    """`topic_errors`: (topic, error code, message) of each topic."""

    throttle_time_ms: int
    topic_errors: list[tuple[str, int, str | None]]

    def to_object(self) -> dict[str, Any]:
        """Return it as dictionaries."""
        return _object(("throttle_time_ms", ("topic_errors", _TOPIC_ERROR)), self)


class DescribeConfigsResponse(NamedTuple):
    """`resources`: (error code, message, type, name, entries), an entry being (name, value,
    read-only, source, sensitive, synonyms)."""

    throttle_time_ms: int
    resources: list[tuple[int, str | None, int, str, list[tuple[Any, ...]]]]

    def to_object(self) -> dict[str, Any]:
        """Return it as dictionaries."""
        return _object(("throttle_time_ms", ("resources", (*_ALTERED, ("config_entries", _ENTRY)))), self)


class AlterConfigsResponse(NamedTuple):
    """`resources`: (error code, message, type, name)."""

    throttle_time_ms: int
    resources: list[tuple[int, str | None, int, str]]

    def to_object(self) -> dict[str, Any]:
        """Return it as dictionaries."""
        return _object(("throttle_time_ms", ("resources", _ALTERED)), self)


class DescribeGroupsResponse(NamedTuple):
    """`groups`: (error code, group, state, protocol type, protocol, members), a member being (id,
    client id, host, metadata, assignment)."""

    throttle_time_ms: int
    groups: list[tuple[int, str, str, str, str, list[tuple[Any, ...]]]]

    def to_object(self) -> dict[str, Any]:
        """Return it as dictionaries."""
        return _object(("throttle_time_ms", ("groups", _GROUP)), self)


class MetadataResponse(NamedTuple):
    """`brokers`: (node id, host, port, rack); `topics`: (error code, topic, internal, partitions),
    a partition being (error code, number, leader, replicas, in-sync replicas, offline replicas)."""

    throttle_time_ms: int
    brokers: list[tuple[int, str, int, str | None]]
    cluster_id: str | None
    controller_id: int
    topics: list[tuple[int, str, bool, list[tuple[Any, ...]]]]

    def to_object(self) -> dict[str, Any]:
        """Return it as dictionaries."""
        names = ("throttle_time_ms", ("brokers", _BROKER), "cluster_id", "controller_id", ("topics", _TOPIC))
        return _object(names, self)


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
