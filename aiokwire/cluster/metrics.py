"""The metrics that producer, consumer and admin client share: those of their connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiokwire.metrics import CLIENT_ID, Metric, Sample
from aiokwire.net import NETWORK_METRICS

if TYPE_CHECKING:
    from aiokwire.cluster.client import Client

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
