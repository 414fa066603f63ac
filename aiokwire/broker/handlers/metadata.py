"""Metadata: v0-13

Brokers, topics and partitions; creates missing topics if that is allowed.

Version notes:
- v0: an empty list means all topics; v1 and up: null does
- v4: whether topics may be created
- v8-10: allowed operations on the cluster; v8: on topics
- v10: topic ids in responses; v12: topics by id
"""

from __future__ import annotations

from collections.abc import Iterable

from aiokwire.broker.dispatch import WHOLE_TOPIC, Call, MaybeAwaitable
from aiokwire.broker.handlers._shared import (
    NOT_ASKED,
    allowed_cluster_operations,
    allowed_operations,
    find_topic,
)
from aiokwire.broker.nodes import NO_NODE
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.broker.topics import Partition, Topic
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol.messages import metadata as messages


def handle(request: messages.MetadataRequest, call: Call) -> MaybeAwaitable[messages.MetadataResponse]:
    """Respond at once, unless a topic must be created."""
    if request.topics is None or (call.version == 0 and not request.topics):
        return _response(call, request, [_topic(topic, call, request) for topic in _visible(call)])
    missing = []
    if request.allow_auto_topic_creation and call.state.configs.boolean("auto.create.topics.enable"):
        missing = [one.name for one in request.topics if one.name and call.state.topics.get(one.name) is None]
    denied = _not_creatable(call, missing) if call.state.authorizer is not None else {}
    if len(denied) < len(set(missing)):
        return _after_creating(call, request, [name for name in missing if name not in denied], denied)
    return _response(call, request, _asked(call, request, denied))


def _visible(call: Call) -> Iterable[Topic]:
    if call.state.authorizer is None:
        return call.state.topics
    operation, kind = AclOperation.DESCRIBE, ResourceType.TOPIC
    return [topic for topic in call.state.topics if call.is_allowed(operation, kind, topic.name, is_asked=False)]


def _not_creatable(call: Call, names: list[str]) -> dict[str, ErrorCode]:
    """Return the missing topics that the client may not describe, or not create."""
    creates_all = call.is_allowed_in_cluster(AclOperation.CREATE, is_asked=False)
    denied = {}
    for name in dict.fromkeys(names):
        may_describe = call.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, name, is_asked=False)
        if not may_describe or not (creates_all or call.is_allowed(AclOperation.CREATE, ResourceType.TOPIC, name)):
            denied[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return denied


async def _after_creating(
    call: Call, request: messages.MetadataRequest, names: list[str], faults: dict[str, ErrorCode]
) -> messages.MetadataResponse:
    partitions = call.state.configs.integer("num.partitions")
    for name in dict.fromkeys(names):
        try:
            await call.state.topics.create_in_thread(name, partitions, {})
        except BrokerError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                faults[name] = error.code
        except StorageError:
            faults[name] = ErrorCode.KAFKA_STORAGE_ERROR
    await call.state.topics.save()
    return _response(call, request, _asked(call, request, faults))


def _asked(
    call: Call, request: messages.MetadataRequest, faults: dict[str, ErrorCode]
) -> list[messages.MetadataResponseTopic]:
    answered = []
    for one in request.topics or []:
        topic, code = find_topic(call, one.name, one.topic_id, AclOperation.DESCRIBE)
        if topic is not None:
            answered.append(_topic(topic, call, request))
            continue
        if call.faults is not None:
            code = call.faults.code(one.name or "", WHOLE_TOPIC) or code
        answered.append(
            messages.MetadataResponseTopic(
                error_code=faults.get(one.name or "", code),
                # Versions before 12 have no null for the name.
                name=one.name if one.name is not None or call.version >= 12 else "",
                topic_id=one.topic_id,
            )
        )
    return answered


def _topic(topic: Topic, call: Call, request: messages.MetadataRequest) -> messages.MetadataResponseTopic:
    code = call.faults.code(topic.name, WHOLE_TOPIC) if call.faults is not None else ErrorCode.NONE
    if code is not ErrorCode.NONE:
        return messages.MetadataResponseTopic(error_code=code, name=topic.name, topic_id=topic.id)
    return messages.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[_partition(partition, call) for partition in topic.partitions],
        topic_authorized_operations=allowed_operations(call, ResourceType.TOPIC, topic.name)
        if request.include_topic_authorized_operations
        else NOT_ASKED,
    )


def _partition(partition: Partition, call: Call) -> messages.MetadataResponsePartition:
    nodes = call.state.nodes
    leader = nodes.leader(partition)
    code = call.faults.code(partition.topic.name, partition.index) if call.faults is not None else ErrorCode.NONE
    if code is ErrorCode.NONE and leader.node_id == NO_NODE:
        code = ErrorCode.LEADER_NOT_AVAILABLE
    replicas = nodes.replicas(partition.index)
    up = {node.id for node in nodes.listed()} if len(replicas) > 1 else replicas
    return messages.MetadataResponsePartition(
        error_code=code,
        partition_index=partition.index,
        leader_id=leader.node_id if code is ErrorCode.NONE else NO_NODE,
        leader_epoch=leader.epoch,
        replica_nodes=replicas,
        isr_nodes=[one for one in replicas if one in up],
        offline_replicas=[one for one in replicas if one not in up] if call.version >= 5 else [],
    )


def _response(
    call: Call, request: messages.MetadataRequest, topics: list[messages.MetadataResponseTopic]
) -> messages.MetadataResponse:
    addresses = [(node.id, call.advertised(node)) for node in call.state.nodes.listed()]
    return messages.MetadataResponse(
        brokers=[
            messages.MetadataResponseBroker(node_id=node_id, host=host, port=port)
            for node_id, (host, port) in addresses
        ],
        cluster_id=call.state.cluster_id,
        controller_id=call.state.nodes.controller,
        topics=topics,
        cluster_authorized_operations=allowed_cluster_operations(call)
        if request.include_cluster_authorized_operations and 8 <= call.version <= 10
        else NOT_ASKED,
    )
