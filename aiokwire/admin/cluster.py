"""The cluster as a whole: its brokers and its controller."""

from __future__ import annotations

import dataclasses

from aiokwire.admin.acls import AclOperation, operations_of
from aiokwire.admin.calls import fetch_metadata
from aiokwire.backoff import Deadline
from aiokwire.cluster import ANY, Client
from aiokwire.errors import UnsupportedVersion, error_for
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

    `cluster_id` is None with brokers before 0.10.1, `controller_id` while none is elected.
    """

    cluster_id: str | None
    controller_id: int | None
    brokers: tuple[BrokerDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None
    """The operations that this client may perform on the cluster, if requested (KIP-430)."""


async def describe(client: Client, deadline: Deadline, *, with_operations: bool) -> ClusterDescription:
    """Describe the cluster.

    Raises: BrokerError: the broker refuses, or is too old for authorized operations.
    """
    request = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=with_operations)
    try:
        response = await client.request(request, to=ANY, timeout=deadline.remaining)
    except UnsupportedVersion:
        if with_operations:
            raise
        return read_cluster_from_metadata(await fetch_metadata(client, [], deadline))
    if response.error_code:
        raise error_for(response.error_code, f"cannot describe the cluster: {response.error_message}")
    return read_cluster(response)


def read_cluster(response: describe_cluster.DescribeClusterResponse) -> ClusterDescription:
    brokers = [BrokerDescription(one.broker_id, one.host, one.port, one.rack) for one in response.brokers]
    operations = operations_of(response.cluster_authorized_operations)
    return _description(response.cluster_id or None, response.controller_id, brokers, operations)


def read_cluster_from_metadata(response: metadata.MetadataResponse) -> ClusterDescription:
    """Describe the cluster of brokers before 2.8, which lack DescribeCluster (KIP-700)."""
    brokers = [BrokerDescription(one.node_id, one.host, one.port, one.rack) for one in response.brokers]
    return _description(response.cluster_id, response.controller_id, brokers, None)


def _description(
    cluster_id: str | None,
    controller_id: int,
    brokers: list[BrokerDescription],
    operations: frozenset[AclOperation] | None,
) -> ClusterDescription:
    return ClusterDescription(
        cluster_id,
        None if controller_id < 0 else controller_id,
        tuple(sorted(brokers, key=lambda broker: broker.node_id)),
        operations,
    )
