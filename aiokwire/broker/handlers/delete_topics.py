"""DeleteTopics: v0-6

Deletes topics at once, and their files after file.delete.delay.ms.

Version notes:
- v5: error messages; v6: by topic id
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import find_topic
from aiokwire.broker.security import AclOperation, MutationQuota, ResourceType
from aiokwire.broker.throttling import mutation_quota, throttle_of
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, StorageError
from aiokwire.protocol.messages import delete_topics as messages

STRICT_QUOTA_SINCE = 5  # version


async def handle(request: messages.DeleteTopicsRequest, call: Call) -> messages.DeleteTopicsResponse:
    """Respond once the deletion is stored."""
    quota = mutation_quota(call, STRICT_QUOTA_SINCE)
    responses = [await _delete_one(call, topic, quota) for topic in _wanted(request, call.version)]
    return messages.DeleteTopicsResponse(responses=responses, throttle_time_ms=throttle_of(quota, call))


def refuse(request: messages.DeleteTopicsRequest, version: int, code: ErrorCode) -> messages.DeleteTopicsResponse:
    """Return an error for each topic."""
    return messages.DeleteTopicsResponse(
        responses=[
            messages.DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=code)
            for topic in _wanted(request, version)
        ]
    )


def _wanted(request: messages.DeleteTopicsRequest, version: int) -> list[messages.DeleteTopicState]:
    if version >= 6:
        return request.topics
    return [messages.DeleteTopicState(name=name) for name in request.topic_names]


async def _delete_one(
    call: Call, wanted: messages.DeleteTopicState, quota: MutationQuota | None
) -> messages.DeletableTopicResult:
    deletes_all = call.is_allowed_in_cluster(AclOperation.DELETE, is_asked=False)
    operation = None if deletes_all else AclOperation.DESCRIBE
    topic, code = find_topic(call, wanted.name, wanted.topic_id, operation)
    if (
        topic is not None
        and not deletes_all
        and not call.is_allowed(AclOperation.DELETE, ResourceType.TOPIC, topic.name)
    ):
        return _denied(wanted, topic.name)
    if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return _denied(wanted, wanted.name)
    message = None
    if topic is not None and not call.state.configs.boolean("delete.topic.enable"):
        code, message = ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false"
    elif topic is not None:
        try:
            if quota is not None:
                quota.record(len(topic.partitions))
            await call.state.delete_topic(topic)
        except BrokerError as error:
            code, message = error.code, str(error)
        except StorageError as error:
            code, message = ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    name = topic.name if topic is not None else wanted.name
    return messages.DeletableTopicResult(
        name=name if name is not None or call.version >= 6 else "",
        topic_id=topic.id if topic is not None else wanted.topic_id,
        error_code=code,
        error_message=message if call.version >= 5 else None,
    )


def _denied(wanted: messages.DeleteTopicState, name: str | None) -> messages.DeletableTopicResult:
    """Return the error for a denied topic, with its name if the client may describe it."""
    return messages.DeletableTopicResult(
        name=name, topic_id=wanted.topic_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=None
    )
