"""DescribeQuorum: v0-2

The broker keeps its own metadata: all nodes are voters and up to date. Offsets count topic changes.

Version notes:
- v1: when each replica fetched last (now); v2: messages, directory ids (none), the nodes' listeners
"""

from __future__ import annotations

from aiokwire.broker.cluster_metadata import METADATA_TOPIC
from aiokwire.broker.dispatch import Call
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import describe_quorum as messages

_LISTENER = "CONTROLLER"


def handle(request: messages.DescribeQuorumRequest, call: Call) -> messages.DescribeQuorumResponse:
    """Respond at once."""
    topics = [
        messages.DescribeQuorumResponseTopicData(
            topic_name=topic.topic_name,
            partitions=[_partition(topic.topic_name, one.partition_index, call) for one in topic.partitions],
        )
        for topic in request.topics
    ]
    is_known = any(not one.error_code for topic in topics for one in topic.partitions)
    return messages.DescribeQuorumResponse(topics=topics, nodes=_nodes(call) if is_known and call.version >= 2 else [])


def _partition(topic: str, index: int, call: Call) -> messages.DescribeQuorumResponsePartitionData:
    if topic != METADATA_TOPIC or index != 0:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return messages.DescribeQuorumResponsePartitionData(
            partition_index=index, error_code=code, error_message=code.description if call.version >= 2 else ""
        )
    end = call.state.topics.version + 1
    now = wall_ms() if call.version >= 1 else -1
    return messages.DescribeQuorumResponsePartitionData(
        partition_index=0,
        leader_id=call.state.nodes.controller,
        leader_epoch=call.state.logs.leader_epoch + 1,
        high_watermark=end,
        current_voters=[
            messages.ReplicaState(
                replica_id=one, log_end_offset=end, last_fetch_timestamp=now, last_caught_up_timestamp=now
            )
            for one in call.state.nodes.ids
        ],
    )


def _nodes(call: Call) -> list[messages.Node]:
    found = []
    for node in call.state.nodes:
        host, port = call.advertised(node)
        found.append(
            messages.Node(node_id=node.id, listeners=[messages.Listener(name=_LISTENER, host=host, port=port)])
        )
    return found
