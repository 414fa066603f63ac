"""Topics: create, describe, list, delete, add partitions. Values and messages for `Admin`."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterable, Mapping, Sequence

from aiokwire.admin.acls import AclOperation, operations_of
from aiokwire.admin.calls import with_message
from aiokwire.admin.results import Results
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, InvalidArgument, error_for
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import create_partitions, create_topics, delete_topics, metadata

BROKERS_DEFAULT = -1  # for partitions and replicas: the broker's setting (KIP-464)


@dataclasses.dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. A number of -1 means the broker's default; `assignments` (the replicas of
    each partition) replaces both numbers."""

    name: str
    partitions: int = BROKERS_DEFAULT
    replication_factor: int = BROKERS_DEFAULT
    configs: Mapping[str, object] = dataclasses.field(default_factory=dict)
    assignments: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgument(f"a topic name must be a non-empty str, not {self.name!r}")
        for what in ("partitions", "replication_factor"):
            number = getattr(self, what)
            if type(number) is not int or (number < 1 and number != BROKERS_DEFAULT):
                raise InvalidArgument(
                    f"{self.name}: {what} must be an int of at least 1, or -1 for the broker's default, not {number!r}"
                )


@dataclasses.dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A created topic; numbers are -1 if the broker is too old to return them."""

    name: str
    topic_id: uuid.UUID | None
    partitions: int
    replication_factor: int


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition; `leader` is None while it has none."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic and its partitions, in order."""

    name: str
    topic_id: uuid.UUID | None
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None
    """The operations that this client may perform on the topic, if requested (KIP-430)."""


@dataclasses.dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic in the list of topics."""

    name: str
    topic_id: uuid.UUID | None
    is_internal: bool
    partitions: int


def config_text(value: object) -> str | None:
    """Return a setting's value in the brokers' spelling."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(str(one) for one in value)
    return str(value)


def create_request(
    topics: Iterable[NewTopic], *, timeout_ms: int, validate_only: bool
) -> create_topics.CreateTopicsRequest:
    return create_topics.CreateTopicsRequest(
        topics=[_creatable(topic) for topic in topics], timeout_ms=timeout_ms, validate_only=validate_only
    )


def _creatable(topic: NewTopic) -> create_topics.CreatableTopic:
    assignments = [
        create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
        for index, replicas in enumerate(topic.assignments or ())
    ]
    return create_topics.CreatableTopic(
        name=topic.name,
        num_partitions=BROKERS_DEFAULT if assignments else topic.partitions,
        replication_factor=BROKERS_DEFAULT if assignments else topic.replication_factor,
        assignments=assignments,
        configs=[
            create_topics.CreatableTopicConfig(name=name, value=config_text(value))
            for name, value in topic.configs.items()
        ],
    )


def read_created(response: create_topics.CreateTopicsResponse) -> Results[str, CreatedTopic]:
    succeeded: dict[str, CreatedTopic] = {}
    errors: dict[str, BrokerError] = {}
    for topic in response.topics:
        if topic.error_code:
            errors[topic.name] = topic_error("create", topic.name, topic.error_code, topic.error_message)
        else:
            succeeded[topic.name] = CreatedTopic(
                topic.name, topic_id_of(topic.topic_id), topic.num_partitions, topic.replication_factor
            )
    return Results(succeeded, errors)


def delete_request(names: Sequence[str], *, timeout_ms: int, by_state: bool) -> delete_topics.DeleteTopicsRequest:
    """`by_state`: the form of version 6 and later."""
    if by_state:
        states = [delete_topics.DeleteTopicState(name=name) for name in names]
        return delete_topics.DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)
    return delete_topics.DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)


def read_deleted(response: delete_topics.DeleteTopicsResponse) -> Results[str, None]:
    succeeded: dict[str, None] = {}
    errors: dict[str, BrokerError] = {}
    for topic in response.responses:
        name = topic.name or ""
        if topic.error_code:
            errors[name] = topic_error("delete", name, topic.error_code, topic.error_message)
        else:
            succeeded[name] = None
    return Results(succeeded, errors)


def grow_request(
    counts: Mapping[str, int], *, timeout_ms: int, validate_only: bool
) -> create_partitions.CreatePartitionsRequest:
    topics = [
        create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
        for name, count in counts.items()
    ]
    return create_partitions.CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)


def read_grown(response: create_partitions.CreatePartitionsResponse, counts: Mapping[str, int]) -> Results[str, int]:
    succeeded: dict[str, int] = {}
    errors: dict[str, BrokerError] = {}
    for topic in response.results:
        if topic.error_code:
            errors[topic.name] = topic_error("add partitions to", topic.name, topic.error_code, topic.error_message)
        else:
            succeeded[topic.name] = counts[topic.name]
    return Results(succeeded, errors)


def read_described(response: metadata.MetadataResponse, names: Sequence[str]) -> Results[str, TopicDescription]:
    succeeded: dict[str, TopicDescription] = {}
    errors: dict[str, BrokerError] = {}
    for topic in response.topics:
        name = topic.name or ""
        if topic.error_code:
            errors[name] = topic_error("describe", name, topic.error_code, None)
        else:
            succeeded[name] = _description(topic)
    for name in names:
        if name not in succeeded and name not in errors:
            errors[name] = topic_error("describe", name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    return Results(succeeded, errors)


def _description(topic: metadata.MetadataResponseTopic) -> TopicDescription:
    partitions = tuple(
        PartitionDescription(
            partition=one.partition_index,
            leader=None if one.leader_id < 0 else one.leader_id,
            leader_epoch=one.leader_epoch,
            replicas=tuple(one.replica_nodes),
            in_sync=tuple(one.isr_nodes),
            offline=tuple(one.offline_replicas),
        )
        for one in sorted(topic.partitions, key=lambda one: one.partition_index)
    )
    return TopicDescription(
        topic.name or "",
        topic_id_of(topic.topic_id),
        topic.is_internal,
        partitions,
        operations_of(topic.topic_authorized_operations),
    )


def read_listed(response: metadata.MetadataResponse, *, internal: bool) -> list[TopicListing]:
    return sorted(
        (
            TopicListing(topic.name or "", topic_id_of(topic.topic_id), topic.is_internal, len(topic.partitions))
            for topic in response.topics
            if not topic.error_code and (internal or not topic.is_internal)
        ),
        key=lambda listing: listing.name,
    )


def topic_id_of(raw: bytes) -> uuid.UUID | None:
    return None if raw in (b"", ZERO_UUID) else uuid.UUID(bytes=bytes(raw))


def topic_error(verb: str, name: str, code: int, message: str | None) -> BrokerError:
    context = f"cannot {verb} topic {name!r}"
    return error_for(code, with_message(context, message), topic=name)
