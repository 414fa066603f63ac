"""DescribeCluster: v0-2

Version notes:
- v1: endpoint types; this broker has no controllers to describe
- v2: fenced brokers; this broker never fences one
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import NOT_ASKED, allowed_cluster_operations
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import describe_cluster as messages

BROKERS = 1


def handle(request: messages.DescribeClusterRequest, call: Call) -> messages.DescribeClusterResponse:
    """Respond at once."""
    if request.endpoint_type != BROKERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if request.endpoint_type == 2 else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        return messages.DescribeClusterResponse(
            error_code=code, error_message="this is a broker's listener: it describes brokers only"
        )
    addresses = [(node.id, call.advertised(node)) for node in call.state.nodes.listed()]
    return messages.DescribeClusterResponse(
        cluster_id=call.state.cluster_id,
        controller_id=call.state.nodes.controller,
        brokers=[
            messages.DescribeClusterBroker(broker_id=node_id, host=host, port=port)
            for node_id, (host, port) in addresses
        ],
        cluster_authorized_operations=allowed_cluster_operations(call)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
