"""Requests of `Admin` about the records of partitions, to their leaders, by the call's deadline."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster import Answers, Client, ask_leaders
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import InvalidArgument, error_for
from aiokwire.net import Connection
from aiokwire.protocol.messages import delete_records as messages
from aiokwire.types import TopicPartition


async def delete(
    client: Client, offsets: Mapping[TopicPartition, int], deadline: Deadline
) -> dict[TopicPartition, int]:
    """Delete the records before an offset of each partition; return the new log start offsets.

    Raises: InvalidArgument: an offset is neither -1 nor at least 0; BrokerError; RequestTimedOut.
    """
    for tp, offset in offsets.items():
        if type(offset) is not int or offset < -1:
            raise InvalidArgument(f"{tp}: the offset must be at least 0, or -1 for the end, not {offset!r}")
    return await ask_leaders(client, offsets, _ask_leader, deadline)


async def _ask_leader(connection: Connection, offsets: Mapping[TopicPartition, int], timeout: float) -> Answers[int]:
    """Raises: ConnectionFailed, RequestTimedOut: no response; UnsupportedVersion."""
    version = connection.versions.pick(messages.DeleteRecordsRequest)
    topics: dict[str, messages.DeleteRecordsTopic] = {}
    for tp, offset in offsets.items():
        topic = topics.setdefault(tp.topic, messages.DeleteRecordsTopic(name=tp.topic))
        topic.partitions.append(messages.DeleteRecordsPartition(partition_index=tp.partition, offset=offset))
    request = messages.DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=round(timeout * 1000))
    deadline = Deadline(timeout, f"DeleteRecords v{version} to {connection.who}")
    with anyio.CancelScope(deadline=deadline.at):
        return _read(await connection.request(request, version=version), offsets, connection.who)
    raise deadline.error()


def _read(response: messages.DeleteRecordsResponse, asked: Mapping[TopicPartition, int], who: str) -> Answers[int]:
    """Sort the responses; a missing partition counts as unknown."""
    answers: Answers[int] = Answers({}, {}, {})
    codes = {
        TopicPartition(topic.name, each.partition_index): each for topic in response.topics for each in topic.partitions
    }
    for tp in asked:
        found = codes.get(tp)
        if found is not None and not found.error_code:
            answers.found[tp] = found.low_watermark
            continue
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else found.error_code
        error = error_for(
            code, f"DeleteRecords of {tp} from {who}", topic=tp.topic, partition=tp.partition, request="DeleteRecords"
        )
        (answers.again if error.retriable else answers.refused)[tp] = error
    return answers
