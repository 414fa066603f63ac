"""CreateTopics: v0-7

Each topic succeeds or fails by itself. One broker means one replica of everything.

Version notes:
- v1: validate_only, error messages; v4: -1 partitions or replicas mean the broker's defaults
- v5: configs in force in the response; v7: topic ids
"""

from __future__ import annotations

from collections import Counter

from aiokwire.broker.configs import check_topic_configs, topic_keys
from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import AclOperation, MutationQuota, ResourceType
from aiokwire.broker.throttling import mutation_quota, throttle_of
from aiokwire.broker.topics import Topic
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, ConfigurationError, StorageError
from aiokwire.protocol.messages import create_topics as messages

MAX_PARTITIONS = 10_000
STRICT_QUOTA_SINCE = 6  # version


async def handle(request: messages.CreateTopicsRequest, call: Call) -> messages.CreateTopicsResponse:
    """Respond once the topics are stored."""
    times = Counter(topic.name for topic in request.topics)
    results = []
    quota = mutation_quota(call, STRICT_QUOTA_SINCE)
    for name in dict.fromkeys(topic.name for topic in request.topics):
        wanted = next(topic for topic in request.topics if topic.name == name)
        try:
            if times[name] > 1:
                raise BrokerError(f"topic {name!r} is named twice in the request", code=ErrorCode.INVALID_REQUEST)
            if not _may_create(call, name):
                raise BrokerError("Authorization failed.", code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            results.append(await _create_one(call, wanted, quota, validate_only=request.validate_only))
        except BrokerError as error:
            results.append(_fault(name, error.code, str(error)))
        except ConfigurationError as error:
            results.append(_fault(name, ErrorCode.INVALID_CONFIG, str(error)))
        except StorageError as error:
            results.append(_fault(name, ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
    await call.state.topics.save()
    return messages.CreateTopicsResponse(topics=results, throttle_time_ms=throttle_of(quota, call))


def refuse(request: messages.CreateTopicsRequest, version: int, code: ErrorCode) -> messages.CreateTopicsResponse:
    """Return an error for each topic."""
    return messages.CreateTopicsResponse(topics=[_fault(topic.name, code, "") for topic in request.topics])


def _may_create(call: Call, name: str) -> bool:
    return call.is_allowed_in_cluster(AclOperation.CREATE, is_asked=False) or call.is_allowed(
        AclOperation.CREATE, ResourceType.TOPIC, name
    )


async def _create_one(
    call: Call, wanted: messages.CreatableTopic, quota: MutationQuota | None, *, validate_only: bool
) -> messages.CreatableTopicResult:
    topics = call.state.topics
    topics.check_new(wanted.name)
    partitions = _partitions(call, wanted)
    configs = {config.name: config.value for config in wanted.configs}
    check_topic_configs(configs)
    given = {name: value for name, value in configs.items() if value is not None}
    if quota is not None:
        quota.record(partitions)
    topic = (
        Topic(wanted.name, bytes(16), given)
        if validate_only
        else await topics.create_in_thread(wanted.name, partitions, given)
    )
    if not call.is_allowed(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name, is_asked=False):
        return messages.CreatableTopicResult(
            name=topic.name,
            topic_id=topic.id,
            error_message=None,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED if call.version >= 5 else 0,
        )
    return messages.CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        error_message=None,
        num_partitions=partitions if call.version >= 5 else -1,
        replication_factor=len(call.state.nodes) if call.version >= 5 else -1,
        configs=_configs(call, topic) if call.version >= 5 else [],
    )


def _partitions(call: Call, wanted: messages.CreatableTopic) -> int:
    if wanted.assignments:
        return _assigned(call, wanted)
    nodes = len(call.state.nodes)
    if wanted.replication_factor != -1 and not 1 <= wanted.replication_factor <= nodes:
        raise BrokerError(
            f"replication factor {wanted.replication_factor} must be from 1 to {nodes}, the number of brokers",
            code=ErrorCode.INVALID_REPLICATION_FACTOR,
        )
    if wanted.num_partitions == -1:
        return call.state.configs.integer("num.partitions")
    if not 1 <= wanted.num_partitions <= MAX_PARTITIONS:
        raise BrokerError(
            f"partitions must be from 1 to {MAX_PARTITIONS}, or -1 for the default, not {wanted.num_partitions}",
            code=ErrorCode.INVALID_PARTITIONS,
        )
    return wanted.num_partitions


def _assigned(call: Call, wanted: messages.CreatableTopic) -> int:
    if wanted.num_partitions != -1 or wanted.replication_factor != -1:
        raise BrokerError(
            "with replica assignments, partitions and replication factor must be -1", code=ErrorCode.INVALID_REQUEST
        )
    assigned = {one.partition_index: one.broker_ids for one in wanted.assignments}
    if sorted(assigned) != list(range(len(wanted.assignments))):
        raise BrokerError(
            "replica assignments must be for partitions 0, 1, ... without a gap",
            code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        )
    if not all(call.state.nodes.may_have(brokers) for brokers in assigned.values()):
        raise BrokerError(
            f"replicas can only be assigned to existing brokers: {', '.join(map(str, call.state.nodes.ids))}",
            code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        )
    return len(assigned)


def _configs(call: Call, topic: Topic) -> list[messages.CreatableTopicConfigs]:
    found = []
    for name in topic_keys():
        value = call.state.configs.topic_value(name, topic.configs)
        found.append(messages.CreatableTopicConfigs(name=name, value=value.value, config_source=value.source))
    return found


def _fault(name: str, code: ErrorCode, message: str) -> messages.CreatableTopicResult:
    return messages.CreatableTopicResult(name=name, error_code=code, error_message=message, configs=None)
