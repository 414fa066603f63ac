"""The new leader in NOT_LEADER_OR_FOLLOWER responses (KIP-951) saves clients a metadata request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        rows = [
            (topic.name, topic.topic_id, one.index, one)
            for topic in response.responses
            for one in topic.partition_responses
        ]
        for node, host, port in _add_leaders(rows, produce.LeaderIdAndEpoch, call):
            response.node_endpoints.append(produce.NodeEndpoint(node_id=node, host=host, port=port))


def fetch_hints(response: fetch.FetchResponse, call: Call) -> None:
    """Add the new leaders of moved partitions, if the version has fields for them."""
    if call.version >= FETCH_SINCE:
        rows = [
            (topic.topic, topic.topic_id, one.partition_index, one)
            for topic in response.responses
            for one in topic.partitions
        ]
        for node, host, port in _add_leaders(rows, fetch.LeaderIdAndEpoch, call):
            if call.version >= FETCH_ENDPOINTS_SINCE:
                response.node_endpoints.append(fetch.NodeEndpoint(node_id=node, host=host, port=port))


def _add_leaders(
    rows: Iterable[tuple[str, bytes, int, Any]], leader_type: Callable[..., Any], call: Call
) -> list[tuple[int, str, int]]:
    """Set `current_leader` in moved rows (topic, id, partition, response); return the endpoints."""
    nodes: dict[int, tuple[int, str, int]] = {}
    for name, topic_id, index, answer in rows:
        leader = _moved_to(call, name, topic_id, index) if answer.error_code in MOVED else None
        if leader is not None:
            answer.current_leader = leader_type(leader_id=leader.node_id, leader_epoch=leader.epoch)
            nodes[leader.node_id] = (leader.node_id, *call.advertised(call.state.nodes.get(leader.node_id)))
    return list(nodes.values())


def _moved_to(call: Call, name: str, topic_id: bytes, index: int) -> Leader | None:
    """Return the leader of a partition if it is another node and metadata names it, else None."""
    topics = call.state.topics
    topic: Topic | None = topics.by_id(topic_id) if topic_id != ZERO_UUID else topics.get(name)
    partition = topic.partition(index) if topic is not None else None
    if partition is None or partition.leader == call.node.id or call.state.nodes.frozen:
        return None
    leader = call.state.nodes.leader(partition)
    return leader if leader.node_id != NO_NODE else None
