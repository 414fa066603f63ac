"""Helpers of several handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from copy import copy
from typing import Any, Protocol, TypeVar, cast

from aiokwire.broker.client_metrics import ClientMetrics, PushingClient
from aiokwire.broker.config_changes import Altered, Change, alter
from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.groups import Client
from aiokwire.broker.security import CLUSTER_NAME, DENIED, SUPPORTED, AclOperation, ResourceType
from aiokwire.broker.topics import Partition, Topic
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ZERO_UUID
from aiokwire.types import TopicPartition


class Named(Protocol):
    """One topic of a request."""

    name: str


M = TypeVar("M")
T = TypeVar("T", bound=Named)

NOT_ASKED = -(2**31)  # instead of the bits of allowed operations
# The operations that a broker without an authorizer allows, a bit for each.
EVERY = {resource: sum(1 << operation for operation in known) for resource, known in SUPPORTED.items()}

# Resource types of the config APIs.
TOPIC = 2
BROKER = 4
BROKER_LOGGER = 8
CLIENT_METRICS = 16
GROUP = 32


def find_topic(
    call: Call, name: str | None, topic_id: bytes, operation: AclOperation | None
) -> tuple[Topic | None, ErrorCode]:
    """Return a topic by id if there is one, else by name.

    The topic is None, with the error, if it does not exist, or the client may not do `operation`
    with it. A name that is denied is not looked up: the response does not reveal whether it exists.
    """
    if topic_id != ZERO_UUID:
        topic = call.state.topics.by_id(topic_id)
        if topic is None:
            return None, ErrorCode.UNKNOWN_TOPIC_ID
        name = topic.name
    else:
        topic = call.state.topics.get(name or "")
    if (
        call.state.authorizer is not None
        and operation is not None
        and not call.is_allowed(operation, ResourceType.TOPIC, name or "")
    ):
        return None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return topic, ErrorCode.NONE if topic is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def allowed_operations(call: Call, resource: ResourceType, name: str) -> int:
    """Return the operations that the client may do with a resource, a bit for each."""
    if call.state.authorizer is None:
        return EVERY[resource]
    known = SUPPORTED[resource]
    return sum(1 << one for one in known if call.is_allowed(one, resource, name, is_asked=False))


def allowed_cluster_operations(call: Call) -> int:
    """Return the operations that the client may do with the cluster, if it may describe it."""
    if not call.is_allowed_in_cluster(AclOperation.DESCRIBE):
        return 0
    return allowed_operations(call, ResourceType.CLUSTER, CLUSTER_NAME)


def config_denial(call: Call, operation: AclOperation, kind: int, name: str) -> ErrorCode:
    """Return why the client may not do `operation` with the configs of a resource, or NONE."""
    resource = {TOPIC: ResourceType.TOPIC, GROUP: ResourceType.GROUP}.get(kind, ResourceType.CLUSTER)
    if call.is_allowed(operation, resource, CLUSTER_NAME if resource is ResourceType.CLUSTER else name):
        return ErrorCode.NONE
    return DENIED[resource]


def partition_fault(call: Call, partition: Partition) -> ErrorCode:
    """Return why this node may not serve a partition (a test's rule; not its leader), or NONE."""
    if call.faults is not None:
        code = call.faults.code(partition.topic.name, partition.index)
        if code is not ErrorCode.NONE:
            return code
    return ErrorCode.NONE if partition.leader == call.node.id else ErrorCode.NOT_LEADER_OR_FOLLOWER


def epoch_fault(partition: Partition, current_leader_epoch: int) -> ErrorCode:
    """Return the error of a client's current leader epoch (KIP-320), or NONE; -1 means unknown."""
    if current_leader_epoch < 0 or current_leader_epoch == partition.leader_epoch:
        return ErrorCode.NONE
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def fenced_code(code: ErrorCode, version: int, since: int) -> ErrorCode:
    """Return the code for clients of that version: older ones do not know PRODUCER_FENCED."""
    if code is ErrorCode.PRODUCER_FENCED and version < since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def offset_fault(call: Call, tp: TopicPartition, metadata: str | None) -> ErrorCode:
    """Return why an offset may not be committed by any client, or NONE."""
    if call.state.topics.partition(*tp) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if len((metadata or "").encode()) > call.state.configs.integer("offset.metadata.max.bytes"):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def alter_if_allowed(
    call: Call, kind: int, name: str, changes: list[Change], *, replace: bool, validate_only: bool
) -> Altered:
    """Change the configs of a resource if the client may; `replace` resets the others."""
    code = config_denial(call, AclOperation.ALTER_CONFIGS, kind, name)
    if code is not ErrorCode.NONE:
        return Altered(code, code.description)
    return alter(call.state, kind, name, changes, replace=replace, validate_only=validate_only)


def split_topics(call: Call, operation: AclOperation, topics: Sequence[T]) -> tuple[list[T], list[T]]:
    """Return the topics of a request with which the client may do `operation`, and the others."""
    allowed: list[T] = []
    denied: list[T] = []
    for topic in topics:
        is_allowed = call.is_allowed(operation, ResourceType.TOPIC, _name_of(call, topic))
        (allowed if is_allowed else denied).append(topic)
    return allowed, denied


def _name_of(call: Call, wanted: Named) -> str:
    topic_id = getattr(wanted, "topic_id", ZERO_UUID)
    topic = call.state.topics.by_id(topic_id) if topic_id != ZERO_UUID else None
    return topic.name if topic is not None else wanted.name


def narrowed(request: M, topics: list[Any]) -> M:
    """Return a copy of a request that names these topics instead."""
    narrow: Any = copy(request)
    narrow.topics = topics
    return cast("M", narrow)


def with_topics(result: MaybeAwaitable[M], rows: Sequence[Any]) -> MaybeAwaitable[M]:
    """Add the rows of denied topics to a response, unless it rejects the whole request."""
    return _with_topics_later(result, rows) if isinstance(result, Awaitable) else _with_topics(result, rows)


def _with_topics(response: Any, rows: Sequence[Any]) -> Any:
    if not getattr(response, "error_code", ErrorCode.NONE):
        response.topics += rows
    return response


async def _with_topics_later(response: Awaitable[M], rows: Sequence[Any]) -> M:
    return cast("M", _with_topics(await response, rows))


def client_of(call: Call) -> Client:
    """Return the sender of a request; the host has Java's format."""
    return Client(call.client_id or "", f"/{call.host}")


def group_fault(call: Call, group_id: str) -> ErrorCode:
    """Return why this node may not serve a group, or NONE; for requests that name several."""
    state = call.state
    if state.plays_several and state.nodes.coordinator(group_id).id != call.node.id:
        return ErrorCode.NOT_COORDINATOR
    return state.groups.load_fault(group_id)


def telemetry_client(call: Call, receiver: ClientMetrics) -> PushingClient:
    """Return the properties by which metrics subscriptions may select a request's sender."""
    name, version = receiver.software_of(call.connection_id)
    host, _, port = call.peer.rpartition(":")
    return PushingClient(call.client_id or "", name, version, host, port)
