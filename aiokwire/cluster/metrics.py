"""The metrics that producer, consumer and admin client share: those of their connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from aiokwire.metrics import CLIENT_ID, Metric, Sample
from aiokwire.net import NETWORK_METRICS
from aiokwire.protocol import ApiKey

if TYPE_CHECKING:
    from aiokwire.cluster.client import Client
    from aiokwire.cluster.metrics_push import MetricsPush

CONNECTIONS: Final = Metric("kafka.connection.count", "gauge", "{connection}", "Connections that are open.")
IN_FLIGHT: Final = Metric("kafka.requests.in.flight", "gauge", "{request}", "Requests without a response so far.")
METADATA_AGE: Final = Metric(
    "kafka.metadata.age", "gauge", "s", "Time since the last metadata of the cluster; older ones are refreshed."
)
METRICS: Final = (CONNECTIONS, IN_FLIGHT, METADATA_AGE, *NETWORK_METRICS)


def samples_of(client: Client) -> list[Sample]:
    """Return the metrics of a client and its connections."""
    labels = {CLIENT_ID: client.config.client_id}
    connections = client.nodes.open_connections
    found = [
        CONNECTIONS.sample(len(connections), labels),
        IN_FLIGHT.sample(sum(one.in_flight for one in connections), labels),
    ]
    age = client.elapsed_since(client.metadata.updated_at)
    if age is not None:
        found.append(METADATA_AGE.sample(age, labels))
    return found + client.nodes.counts.samples(labels, client.nodes.addresses)


def push_metrics(
    client: Client,
    kind: str,
    measure: Callable[[], list[Sample]],
    resource: Callable[[], Mapping[str, str | None]] = dict,
) -> MetricsPush | None:
    """Push the metrics of a started client to its brokers (KIP-714), as `MetricsPush`; None if the
    option forbids it, or no connected broker takes them."""
    connections = client.nodes.open_connections
    is_offered = any(one.ready and one.versions.range(ApiKey.PUSH_TELEMETRY) is not None for one in connections)
    if not client.config.enable_metrics_push or not is_offered:
        return None
    from aiokwire.cluster.metrics_push import MetricsPush  # few brokers take metrics

    push = MetricsPush(client, kind, measure, resource)
    push.start()
    return push
