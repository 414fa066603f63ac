"""CreatePartitions: v0-3

Adds partitions to topics; each topic succeeds or fails by itself.
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.security import AclOperation, ResourceType
from aiokwire.broker.throttling import mutation_quota, throttle_of
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol.messages import create_partitions as messages

MAX_PARTITIONS = 10_000
STRICT_QUOTA_SINCE = 3  # version


async def handle(request: messages.CreatePartitionsRequest, call: Call) -> messages.CreatePartitionsResponse:
    """Respond once the partitions are stored."""
    results = []
    quota = mutation_quota(call, STRICT_QUOTA_SINCE)
    for wanted in request.topics:
        code, message = ErrorCode.NONE, None
        try:
            _check(call, wanted)
            if quota is not None:
                quota.record(wanted.count - len(call.state.topics.require(wanted.name).partitions))
            if not request.validate_only:
                await call.state.topics.add_partitions_in_thread(call.state.topics.require(wanted.name), wanted.count)
        except BrokerError as error:
            code, message = error.code, str(error)
        except StorageError as error:
            code, message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
        results.append(messages.CreatePartitionsTopicResult(name=wanted.name, error_code=code, error_message=message))
    await call.state.topics.save()
    return messages.CreatePartitionsResponse(results=results, throttle_time_ms=throttle_of(quota, call))


def refuse(
    request: messages.CreatePartitionsRequest, version: int, code: ErrorCode
) -> messages.CreatePartitionsResponse:
    """Return an error for each topic."""
    return messages.CreatePartitionsResponse(
        results=[messages.CreatePartitionsTopicResult(name=topic.name, error_code=code) for topic in request.topics]
    )


def _check(call: Call, wanted: messages.CreatePartitionsTopic) -> None:
    if not call.is_allowed(AclOperation.ALTER, ResourceType.TOPIC, wanted.name):
        raise BrokerError("Authorization failed.", code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    have = len(call.state.topics.require(wanted.name).partitions)
    if not have < wanted.count <= MAX_PARTITIONS:
        raise BrokerError(
            f"topic {wanted.name!r} has {have} partitions: the count must be from {have + 1} to {MAX_PARTITIONS}, "
            f"not {wanted.count}",
            code=ErrorCode.INVALID_PARTITIONS,
        )
    if wanted.assignments is not None and (
        len(wanted.assignments) != wanted.count - have
        or not all(call.state.nodes.may_have(one.broker_ids) for one in wanted.assignments)
    ):
        raise BrokerError(
            f"each of the {wanted.count - have} new partitions can only be assigned to brokers "
            f"{', '.join(map(str, call.state.nodes.ids))}",
            code=ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        )
