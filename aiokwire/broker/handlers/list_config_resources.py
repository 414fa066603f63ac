"""ListConfigResources: v0-1

The resources with configs: topics, brokers, their loggers, and subscriptions to metrics of clients.
Groups have none.

Version notes:
- v0 was ListClientMetricsResources, of those subscriptions only
- v1: other types, by default all (KIP-1142)
"""

from __future__ import annotations

from aiokwire.broker.dispatch import Call
from aiokwire.broker.handlers._shared import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from aiokwire.error_codes import ErrorCode
from aiokwire.protocol.messages import list_config_resources as messages

TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def handle(request: messages.ListConfigResourcesRequest, call: Call) -> messages.ListConfigResourcesResponse:
    """Respond at once."""
    types = (CLIENT_METRICS,) if call.version == 0 else request.resource_types or TYPES
    wanted = dict.fromkeys(types)
    if not wanted.keys() <= set(TYPES):
        return messages.ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return messages.ListConfigResourcesResponse(
        config_resources=[
            messages.ConfigResource(resource_name=name, resource_type=kind)
            for kind in wanted
            for name in _names(kind, call)
        ]
    )


def _names(kind: int, call: Call) -> list[str]:
    if kind == TOPIC:
        return [topic.name for topic in call.state.topics]
    if kind in {BROKER, BROKER_LOGGER}:
        return [str(node.id) for node in call.state.nodes.running()]
    if kind == CLIENT_METRICS:
        return sorted(call.state.configs.client_metrics)
    return []
