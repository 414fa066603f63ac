"""The new leader in NOT_LEADER_OR_FOLLOWER responses (KIP-951) saves clients a metadata request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiokwire.broker.dispatch import Call
from aiokwire.broker.nodes import NO_NODE, Leader
from aiokwire.broker.topics import Topic
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch, produce

MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
PRODUCE_SINCE = 10
FETCH_SINCE = 12
FETCH_ENDPOINTS_SINCE = 16


def produce_hints(response: produce.ProduceResponse, call: Call) -> None:
    """Add the new leaders of moved partitions, if the version has fields for them."""
    if call.version >= PRODUCE_SINCE:
        _add_leaders(
            ((topic, topic.name, one, one.index) for topic in response.responses for one in topic.partition_responses),
            response.node_endpoints,
            produce,
            call,
        )


def fetch_hints(response: fetch.FetchResponse, call: Call) -> None:
    """Add the new leaders of moved partitions, if the version has fields for them."""
    if call.version >= FETCH_SINCE:
        _add_leaders(
            (
                (topic, topic.topic, one, one.partition_index)
                for topic in response.responses
                for one in topic.partitions
            ),
            response.node_endpoints if call.version >= FETCH_ENDPOINTS_SINCE else [],
            fetch,
            call,
        )


def _add_leaders(rows: Iterable[tuple[Any, str, Any, int]], endpoints: list[Any], messages: Any, call: Call) -> None:
    """Set `current_leader` in moved rows (topic, name, partition, index); add its node's endpoint.

    `messages`: the module of the response, whose types the new parts have.
    """
    added: set[int] = set()
    for topic, name, answer, index in rows:
        leader = _moved_to(call, name, topic.topic_id, index) if answer.error_code in MOVED else None
        if leader is None:
            continue
        answer.current_leader = messages.LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader.epoch)
        if leader.node_id not in added:
            added.add(leader.node_id)
            host, port = call.advertised(call.state.nodes.get(leader.node_id))
            endpoints.append(messages.NodeEndpoint(node_id=leader.node_id, host=host, port=port))


def _moved_to(call: Call, name: str, topic_id: bytes, index: int) -> Leader | None:
    """Return the leader of a partition if it is another node and metadata names it, else None."""
    topics = call.state.topics
    topic: Topic | None = topics.by_id(topic_id) if topic_id != ZERO_UUID else topics.get(name)
    partition = topic.partition(index) if topic is not None else None
    if partition is None or partition.leader == call.node.id or call.state.nodes.frozen:
        return None
    leader = call.state.nodes.leader(partition)
    return leader if leader.node_id != NO_NODE else None
