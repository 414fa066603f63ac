"""Who leads a partition now, told with NOT_LEADER_OR_FOLLOWER (KIP-951), so that a client need not ask for metadata."""

from __future__ import annotations

from collections.abc import Iterable

from aiokwire.broker.dispatch import Call
from aiokwire.broker.nodes import NOBODY, Leader, Node
from aiokwire.broker.topics import Topic
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import fetch, produce

MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
PRODUCE_SINCE = 10
FETCH_SINCE = 12
FETCH_ENDPOINTS_SINCE = 16


def produce_hints(response: produce.ProduceResponse, call: Call) -> None:
    """Add the leaders that moved to an answer that can carry them."""
    if call.version < PRODUCE_SINCE:
        return
    leaders = []
    for topic in response.responses:
        for one in topic.partition_responses:
            leader = _moved_to(call, topic.name, topic.topic_id, one.index) if one.error_code in MOVED else None
            if leader is not None:
                one.current_leader = produce.LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader.epoch)
                leaders.append(leader)
    for node in _nodes(call, leaders):
        host, port = call.advertised(node)
        response.node_endpoints.append(produce.NodeEndpoint(node_id=node.id, host=host, port=port))


def fetch_hints(response: fetch.FetchResponse, call: Call) -> None:
    """Add the leaders that moved to an answer that can carry them."""
    if call.version < FETCH_SINCE:
        return
    leaders = []
    for topic in response.responses:
        for one in topic.partitions:
            leader = (
                _moved_to(call, topic.topic, topic.topic_id, one.partition_index) if one.error_code in MOVED else None
            )
            if leader is not None:
                one.current_leader = fetch.LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=leader.epoch)
                leaders.append(leader)
    if call.version < FETCH_ENDPOINTS_SINCE:
        return
    for node in _nodes(call, leaders):
        host, port = call.advertised(node)
        response.node_endpoints.append(fetch.NodeEndpoint(node_id=node.id, host=host, port=port))


def _moved_to(call: Call, name: str, topic_id: bytes, index: int) -> Leader | None:
    """Who leads a partition that this node does not; None where metadata would not tell either."""
    topics = call.state.topics
    topic: Topic | None = topics.by_id(topic_id) if topic_id != ZERO_UUID else topics.get(name)
    partition = topic.partition(index) if topic is not None else None
    if partition is None or partition.leader == call.node.id or call.state.nodes.frozen:
        return None
    leader = call.state.nodes.leader(partition)
    return leader if leader.node_id != NOBODY else None


def _nodes(call: Call, leaders: Iterable[Leader]) -> list[Node]:
    return [call.state.nodes.get(node_id) for node_id in dict.fromkeys(leader.node_id for leader in leaders)]
