"""AlterReplicaLogDirs: v0-2

There is one log directory: a request for it changes nothing, any other is not found.
"""

from __future__ import annotations

from collections.abc import Callable

from aiokwire.broker.dispatch import Call
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import alter_replica_log_dirs as messages


def handle(request: messages.AlterReplicaLogDirsRequest, call: Call) -> messages.AlterReplicaLogDirsResponse:
    """Respond at once."""
    return _response(request, lambda path, topic, index: _code(path, topic, index, call))


def refuse(
    request: messages.AlterReplicaLogDirsRequest, version: int, code: ErrorCode
) -> messages.AlterReplicaLogDirsResponse:
    """Return an error for each partition."""
    return _response(request, lambda path, topic, index: code)


def _response(
    request: messages.AlterReplicaLogDirsRequest, code_of: Callable[[str, str, int], ErrorCode]
) -> messages.AlterReplicaLogDirsResponse:
    results: dict[str, list[messages.AlterReplicaLogDirPartitionResult]] = {}
    for one in request.dirs:
        for topic in one.topics:
            results.setdefault(topic.name, []).extend(
                messages.AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=code_of(one.path, topic.name, index)
                )
                for index in topic.partitions
            )
    return messages.AlterReplicaLogDirsResponse(
        results=[
            messages.AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions)
            for name, partitions in results.items()
        ]
    )


def _code(path: str, topic: str, index: int, call: Call) -> ErrorCode:
    if path.rstrip("/") != call.state.log_dir.rstrip("/"):
        return ErrorCode.LOG_DIR_NOT_FOUND
    if call.state.topics.partition(topic, index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE
