"""DescribeLogDirs: v0-5

The log directory of this broker, with the sizes of the requested partitions.

Version notes:
- v3: an error code of the whole response; v4: the size of the file system and its free space
- v5: cordoned directories (KIP-1066); this broker cordons none
"""

from __future__ import annotations

from collections.abc import Iterable

from aiokwire.broker.dispatch import Call, MaybeAwaitable
from aiokwire.broker.topics import Partition, Topic
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import StorageError
from aiokwire.protocol.messages import describe_log_dirs as messages
from aiokwire.threads import run_in_thread


def handle(request: messages.DescribeLogDirsRequest, call: Call) -> MaybeAwaitable[messages.DescribeLogDirsResponse]:
    """Respond at once, unless the file system must be queried."""
    return _with_space(request, call) if call.version >= 4 else _describe(request, call)


def _describe(request: messages.DescribeLogDirsRequest, call: Call) -> messages.DescribeLogDirsResponse:
    topics = [_topic(topic, partitions) for topic, partitions in _wanted(request, call)]
    result = messages.DescribeLogDirsResult(log_dir=call.state.log_dir, topics=topics)
    return messages.DescribeLogDirsResponse(results=[result])


async def _with_space(request: messages.DescribeLogDirsRequest, call: Call) -> messages.DescribeLogDirsResponse:
    response = _describe(request, call)
    (result,) = response.results
    try:
        result.total_bytes, result.usable_bytes = await run_in_thread(call.state.storage.space)
    except StorageError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
    return response


def _wanted(request: messages.DescribeLogDirsRequest, call: Call) -> Iterable[tuple[Topic, list[Partition]]]:
    if request.topics is None:
        yield from ((topic, topic.partitions) for topic in call.state.topics)
        return
    for one in request.topics:
        topic = call.state.topics.get(one.topic)
        found = [topic.partition(index) for index in dict.fromkeys(one.partitions)] if topic is not None else []
        there = [partition for partition in found if partition is not None]
        if topic is not None and there:
            yield topic, there


def _topic(topic: Topic, partitions: list[Partition]) -> messages.DescribeLogDirsTopic:
    sizes = [
        messages.DescribeLogDirsPartition(partition_index=one.index, partition_size=one.log.size) for one in partitions
    ]
    return messages.DescribeLogDirsTopic(name=topic.name, partitions=sizes)
