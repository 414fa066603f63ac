"""Detects whether a new leader's log was truncated before a position (KIP-320, OffsetForLeaderEpoch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aiokwire.consumer.positions import PartitionState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import BrokerError, error_for
from aiokwire.net import Connection
from aiokwire.protocol import ApiKey
from aiokwire.protocol.messages import offset_for_leader_epoch as messages
from aiokwire.types import TopicPartition

# Earlier versions need a broker's permissions (KIP-320).
FIRST_VERSION_FOR_CONSUMERS: Final = 3
CONSUMER_REPLICA: Final = -1


def epoch_request(states: Sequence[PartitionState]) -> messages.OffsetForLeaderEpochRequest:
    """Ask for the end of the epoch under which each position was read."""
    topics: dict[str, messages.OffsetForLeaderTopic] = {}
    for state in states:
        name, partition = state.tp
        topic = topics.setdefault(name, messages.OffsetForLeaderTopic(topic=name))
        topic.partitions.append(
            messages.OffsetForLeaderPartition(
                partition=partition,
                current_leader_epoch=state.source.leader_epoch,
                leader_epoch=state.cursor.fetch_epoch,
            )
        )
    return messages.OffsetForLeaderEpochRequest(replica_id=CONSUMER_REPLICA, topics=list(topics.values()))


def read_epochs(
    response: messages.OffsetForLeaderEpochResponse, states: Sequence[PartitionState], who: str
) -> dict[TopicPartition, int | BrokerError]:
    """Return each partition's end of the epoch, negative if the leader does not know it, or its error."""
    ends: dict[TopicPartition, int | BrokerError] = {}
    for topic in response.topics:
        for data in topic.partitions:
            tp = TopicPartition(topic.topic, data.partition)
            ends[tp] = data.end_offset if not data.error_code else _error(tp, data.error_code, who)
    for state in states:
        if state.tp not in ends:
            ends[state.tp] = _error(state.tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, who)
    return ends


def _error(tp: TopicPartition, code: int, who: str) -> BrokerError:
    context = f"{who} could not return the end of an epoch of {tp}"
    return error_for(code, context, topic=tp.topic, partition=tp.partition, request="OffsetForLeaderEpoch")


async def check_epochs(
    connection: Connection, states: Sequence[PartitionState], *, timeout: float
) -> dict[TopicPartition, int | BrokerError]:
    """Ask the leader of `states`. Brokers that do not support this for consumers count as knowing no epoch.

    Raises: ConnectionFailed, RequestTimedOut: there was no response.
    """
    offered = connection.versions.range(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    if offered is None or offered.max < FIRST_VERSION_FOR_CONSUMERS:
        return {state.tp: -1 for state in states}
    response = await connection.request(epoch_request(states), timeout=timeout)
    return read_epochs(response, states, connection.who)
