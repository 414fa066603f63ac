"""Whether a new leader's log still holds a position (KIP-320): the question and its answers."""

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

# Before, only brokers had the permission to ask (KIP-320).
FIRST_VERSION_FOR_CONSUMERS: Final = 3
CONSUMER_REPLICA: Final = -1


def epoch_request(states: Sequence[PartitionState]) -> messages.OffsetForLeaderEpochRequest:
    """Where does the log of the epoch end that each position was read under?"""
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
    """The end of the epoch by partition (negative when the leader knows none: no loss can be told), or an error."""
    ends: dict[TopicPartition, int | BrokerError] = {}
    for topic in response.topics:
        for data in topic.partitions:
            tp = TopicPartition(topic.topic, data.partition)
            ends[tp] = data.end_offset if not data.error_code else _error(tp, data.error_code, who)
    for state in states:
        if state.tp not in ends:
            ends[state.tp] = _error(state.tp, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{who} left it out of its answer")
    return ends


def _error(tp: TopicPartition, code: int, who: str) -> BrokerError:
    context = f"{who} was asked where an epoch of {tp} ends"
    return error_for(code, context, topic=tp.topic, partition=tp.partition, request="OffsetForLeaderEpoch")


async def check_epochs(
    connection: Connection, states: Sequence[PartitionState], *, timeout: float
) -> dict[TopicPartition, int | BrokerError]:
    """Ask the leader of `states`. A broker that is too old to be asked by a consumer counts as knowing no epoch.

    Raises: ConnectionFailed, RequestTimedOut: no answer came.
    """
    offered = connection.versions.range(ApiKey.OFFSET_FOR_LEADER_EPOCH)
    if offered is None or offered.max < FIRST_VERSION_FOR_CONSUMERS:
        return {state.tp: -1 for state in states}
    response = await connection.request(epoch_request(states), timeout=timeout)
    return read_epochs(response, states, connection.who)
