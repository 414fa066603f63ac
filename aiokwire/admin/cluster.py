"""The cluster as a whole: its brokers and its controller."""

from __future__ import annotations

import dataclasses

from aiokwire.protocol.messages import describe_cluster, metadata


@dataclasses.dataclass(frozen=True, slots=True)
class BrokerDescription:
    """One broker as it advertises itself."""

    node_id: int
    host: str
    port: int
    rack: str | None

    def __str__(self) -> str:
        return f"{self.node_id} at {self.host}:{self.port}"


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterDescription:
    """The brokers, sorted by node id.

    `cluster_id` is None with brokers before 0.10.1, `controller_id` while there is no controller.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[BrokerDescription, ...]


def read_cluster(response: describe_cluster.DescribeClusterResponse) -> ClusterDescription:
    brokers = [BrokerDescription(one.broker_id, one.host, one.port, one.rack) for one in response.brokers]
    return _description(response.cluster_id or None, response.controller_id, brokers)


def read_cluster_from_metadata(response: metadata.MetadataResponse) -> ClusterDescription:
    """Describe the cluster of brokers before 2.8, which lack DescribeCluster (KIP-700)."""
    brokers = [BrokerDescription(one.node_id, one.host, one.port, one.rack) for one in response.brokers]
    return _description(response.cluster_id, response.controller_id, brokers)


def _description(cluster_id: str | None, controller_id: int, brokers: list[BrokerDescription]) -> ClusterDescription:
    return ClusterDescription(
        cluster_id,
        None if controller_id < 0 else controller_id,
        tuple(sorted(brokers, key=lambda broker: broker.node_id)),
    )
