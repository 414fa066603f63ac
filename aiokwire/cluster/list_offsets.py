"""Offsets by time (ListOffsets): start and end of partitions, the first record at or after a time.

Asks the leader of each partition. Used by the consumer (resets, `end_offsets`,
`offsets_for_times`), the admin client, tools with their own positions. KIP-79, KIP-734, KIP-405.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import anyio

from aiokwire.backoff import Deadline
from aiokwire.cluster.leaders import Answers, ask_leaders
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import UnsupportedVersion, error_for
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.protocol.messages import list_offsets as messages
from aiokwire.types import IsolationLevel, OffsetAndTimestamp, TopicPartition

if TYPE_CHECKING:
    from aiokwire.cluster.client import Client
    from aiokwire.net import Connection

logger: FieldLogger = get_logger(__name__)

# Special times, in place of milliseconds.
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3  # the record with the greatest timestamp (KIP-734)
EARLIEST_LOCAL: Final = -4  # the first on the broker's own disk (KIP-405)
LATEST_TIERED: Final = -5  # the last in tiered storage (KIP-1005)

_NEEDS_VERSION: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


def list_offsets_request(
    times: Mapping[TopicPartition, int],
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    epochs: Mapping[TopicPartition, int] | None = None,
    timeout_ms: int = 0,
    version: int,
) -> messages.ListOffsetsRequest:
    """The request for partitions of one leader.

    Raises: UnsupportedVersion: the broker's version does not support the lookup.
    """
    topics: dict[str, messages.ListOffsetsTopic] = {}
    for tp, time in times.items():
        needed = _NEEDS_VERSION.get(time, 1 if time >= 0 else 0)
        if version < needed:
            raise UnsupportedVersion(
                f"{tp}: the broker's ListOffsets v{version} cannot look up {time}, which needs v{needed}",
                topic=tp.topic,
                partition=tp.partition,
                request="ListOffsets",
            )
        topic = topics.get(tp.topic)
        if topic is None:
            topic = topics[tp.topic] = messages.ListOffsetsTopic(name=tp.topic)
        topic.partitions.append(
            messages.ListOffsetsPartition(
                partition_index=tp.partition,
                current_leader_epoch=-1 if epochs is None else epochs.get(tp, -1),
                timestamp=time,
            )
        )
    return messages.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(isolation) if version >= 2 else 0,
        topics=list(topics.values()),
        timeout_ms=timeout_ms,
    )


def read_list_offsets(
    response: messages.ListOffsetsResponse, asked: Mapping[TopicPartition, int], who: str
) -> Answers[OffsetAndTimestamp]:
    """Sort the response; a missing partition is requested again."""
    answers: Answers[OffsetAndTimestamp] = Answers({}, {}, {})
    missing = dict(asked)
    for topic in response.topics:
        for data in topic.partitions:
            tp = TopicPartition(topic.name, data.partition_index)
            if missing.pop(tp, None) is None:
                continue
            if data.error_code:
                _sort_error(answers, tp, data.error_code, who)
            elif data.old_style_offsets:
                answers.found[tp] = OffsetAndTimestamp(data.old_style_offsets[0], -1)
            else:
                answers.found[tp] = OffsetAndTimestamp(data.offset, data.timestamp, data.leader_epoch)
    for tp in missing:
        _sort_error(answers, tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{who}, which left it out of its response")
    return answers


def _sort_error(answers: Answers[OffsetAndTimestamp], tp: TopicPartition, code: int, who: str) -> None:
    error = error_for(
        code,
        f"ListOffsets of {tp} from {who}",
        topic=tp.topic,
        partition=tp.partition,
        request="ListOffsets",
    )
    again = error.retriable or error.code is ErrorCode.UNKNOWN_SERVER_ERROR  # Fetch retries it, too
    (answers.again if again else answers.refused)[tp] = error


async def ask_leader(
    connection: Connection,
    times: Mapping[TopicPartition, int],
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    epochs: Mapping[TopicPartition, int] | None = None,
    timeout: float,
) -> Answers[OffsetAndTimestamp]:
    """Ask one leader once. `timeout` (seconds) ends only the wait, not the connection.

    Raises: ConnectionFailed, RequestTimedOut: no response; UnsupportedVersion: see
    `list_offsets_request`.
    """
    version = connection.versions.pick(messages.ListOffsetsRequest)
    request = list_offsets_request(
        times, isolation=isolation, epochs=epochs, timeout_ms=round(timeout * 1000), version=version
    )
    deadline = Deadline(timeout, f"ListOffsets v{version} to {connection.who}")
    with anyio.CancelScope(deadline=deadline.at):
        response = await connection.request(request, version=version)
        return read_list_offsets(response, times, connection.who)
    raise deadline.error()


async def list_offsets(
    client: Client,
    times: Mapping[TopicPartition, int],
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    timeout: float,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Ask leaders for each partition's offset at a time (milliseconds, `EARLIEST`, `LATEST`, ...).

    The offset is -1 if every record is older. Retries retriable errors for `timeout` seconds.

    Raises: BrokerError: a broker refuses a partition; RequestTimedOut: the deadline passed; has
    the last error.
    """

    async def ask(
        connection: Connection, asked: Mapping[TopicPartition, int], attempt_timeout: float
    ) -> Answers[OffsetAndTimestamp]:
        return await ask_leader(connection, asked, isolation=isolation, timeout=attempt_timeout)

    deadline = Deadline(timeout, f"looking up offsets of {len(times)} partitions")
    return await ask_leaders(client, times, ask, deadline)
