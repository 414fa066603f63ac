"""`AIOKafkaClient`: a cluster's metadata, for applications and beside each producer and
consumer."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any

from aiokwire import errors
from aiokwire.cluster import Broker, Client, ClientConfig, Cluster, Partition, Topic
from aiokwire.compat.aiokafka._version import CLIENT_ID
from aiokwire.compat.aiokafka.cluster import ClusterMetadata
from aiokwire.compat.aiokafka.errors import (
    KafkaConnectionError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    translating,
)
from aiokwire.compat.aiokafka.options import client_options, warn_of_deprecated
from aiokwire.protocol import Request
from aiokwire.protocol.messages.metadata import MetadataRequest, MetadataResponse

__all__ = ["AIOKafkaClient"]


class ConnectionGroup(IntEnum):
    """Which connection aiokafka's requests use; here each request finds its own."""

    DEFAULT = 0
    COORDINATION = 1


class CoordinationType(IntEnum):
    """The kind of key that a coordinator serves."""

    GROUP = 0
    TRANSACTION = 1


class AIOKafkaClient:
    """Finds a cluster and keeps its metadata fresh."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        bootstrap_servers: str | list[str] = "localhost",
        client_id: str = CLIENT_ID,
        metadata_max_age_ms: int = 300000,
        request_timeout_ms: int = 40000,
        retry_backoff_ms: int = 100,
        api_version: str | None = None,
        security_protocol: str = "PLAINTEXT",
        ssl_context: Any = None,
        connections_max_idle_ms: int | None = 540000,
        sasl_mechanism: str = "PLAIN",
        sasl_plain_username: str | None = None,
        sasl_plain_password: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_oauth_token_provider: Any = None,
    ) -> None:
        """Take aiokafka's options; no connection is made before `bootstrap`.

        Raises: ValueError: an option is wrong.
        """
        given = dict(locals())
        warn_of_deprecated(loop, api_version)
        client = Client(ClientConfig(**client_options(given)))
        self._use(lambda: client)

    def _use(self, client: Callable[[], Client]) -> None:
        self._get = client
        self._topics: set[str] = set()

    @classmethod
    def of(cls, client: Callable[[], Client]) -> AIOKafkaClient:
        """Return a client that shares the one of a producer or consumer."""
        new = cls.__new__(cls)
        new._use(client)
        return new

    @property
    def _client(self) -> Client:
        return self._get()

    @property
    def cluster(self) -> ClusterMetadata:
        """The metadata of the cluster."""
        return ClusterMetadata(self._client)

    @property
    def hosts(self) -> list[tuple[str, int, socket.AddressFamily]]:
        """The bootstrap servers, with the family of those given as addresses."""
        return [(each.host, each.port, _family(each.host)) for each in self._client.config.addresses]

    @property
    def _bootstrap_servers(self) -> list[str]:
        """The option: tracing tools report it."""
        return [f"{each.host}:{each.port}" for each in self._client.config.addresses]

    @property
    def _client_id(self) -> str:
        """The option: tracing tools report it."""
        return self._client.config.client_id

    def __repr__(self) -> str:
        return f"<AIOKafkaClient client_id={self._client_id}>"

    async def bootstrap(self) -> None:
        """Connect to the first bootstrap server that responds.

        Raises: KafkaConnectionError: none does.
        """
        with translating(KafkaConnectionError):
            await self._client.start()
        self._pin()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    def get_random_node(self) -> int | None:
        """Return the id of a broker; None before `bootstrap`."""
        brokers = list(self._client.cluster.brokers)
        return self._client.rng.choice(brokers) if brokers else None

    async def ready(self, node_id: int, *, group: object = None) -> bool:
        """Return whether a broker can be reached, after connecting to it."""
        try:
            await self._client.connection(node_id)
        except errors.KafkaError:
            return False
        return True

    async def send(self, node_id: int, request: Any, *, group: object = None) -> Any:
        """Send a request of `aiokwire.protocol.messages` to a broker; return the response.

        Raises: TypeError: a request of aiokafka's own protocol classes.
        """
        from aiokwire.cluster import Node

        if not isinstance(request, Request):
            raise TypeError(
                f"{type(request).__name__} is not a request of aiokwire.protocol.messages: aiokafka's protocol classes "
                "have no equivalent here"
            )
        with translating(KafkaConnectionError):
            return await self._client.request(request, to=Node(node_id))

    async def coordinator_lookup(self, coordinator_type: int, coordinator_key: str) -> int:
        """Return the node id of a group's coordinator (type 0), or of a transactional id's (type
        1)."""
        from aiokwire.cluster import CoordinatorKind

        kind = CoordinatorKind.TRANSACTION if coordinator_type else CoordinatorKind.GROUP
        with translating(KafkaConnectionError):
            return await self._client.coordinators.find(kind, coordinator_key, self._client.config.request_timeout)

    # --- metadata -----------------------------------------------------------------------------------------------------

    def add_topic(self, topic: str) -> asyncio.Future[bool]:
        """Keep the metadata of one more topic; the future is done when it was refreshed."""
        is_new = topic not in self._topics
        self._topics.add(topic)
        if not is_new and topic in self._client.cluster.topics:
            return _done()
        self._client.metadata.want([topic])
        return self.force_metadata_update()

    def set_topics(self, topics: Iterable[str]) -> asyncio.Future[bool]:
        """Keep the metadata of exactly these topics."""
        self._topics = set(topics)
        self._pin()
        return self.force_metadata_update()

    def _pin(self) -> None:
        if self._topics:
            self._client.metadata.want(self._topics)

    def force_metadata_update(self) -> asyncio.Future[bool]:
        """Refresh the metadata; the future's result is whether it worked."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._client.spawn(self._update, future, name="metadata for an application")
        return future

    async def _update(self, future: asyncio.Future[bool]) -> None:
        ok = False
        try:
            await self._client.metadata.update()
            ok = True
        except errors.KafkaError:
            pass  # it is the future's result
        finally:
            if not future.done():
                future.set_result(ok)

    async def fetch_all_metadata(self) -> ClusterMetadata:
        """Return the metadata of all topics."""
        with translating(KafkaConnectionError):
            return AllMetadata(cluster_of(await self._client.request(MetadataRequest(topics=None))))

    async def _wait_on_metadata(self, topic: str) -> set[int]:
        """Return the partitions of a topic, waiting for them up to the request timeout."""
        return await partitions_of(self._client, topic)


def _family(host: str) -> socket.AddressFamily:
    try:
        return socket.AF_INET if ipaddress.ip_address(host).version == 4 else socket.AF_INET6
    except ValueError:  # a name
        return socket.AF_UNSPEC


class AllMetadata(ClusterMetadata):
    """One snapshot of the metadata."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._snapshot = cluster

    @property
    def _cluster(self) -> Cluster:
        return self._snapshot


async def partitions_of(client: Client, topic: str) -> set[int]:
    """Return the partitions of a topic, waiting for them up to the request timeout.

    Raises: UnknownTopicOrPartitionError, TopicAuthorizationFailedError, or as a request.
    """
    try:
        cluster = await client.metadata.wait_for_topics([topic], client.config.request_timeout)
    except errors.RequestTimedOut as error:
        raise UnknownTopicOrPartitionError(str(error)) from error
    except errors.AuthorizationError as error:
        raise TopicAuthorizationFailedError(topic) from error
    except errors.StaleMetadataError as error:
        raise UnknownTopicOrPartitionError(str(error)) from error
    except errors.KafkaError as error:
        with translating():
            raise error
    return {each.partition for each in cluster.topics[topic].partitions}


def cluster_of(answer: MetadataResponse) -> Cluster:
    """Return the snapshot in a response."""
    brokers = {each.node_id: Broker(each.node_id, each.host, each.port, each.rack) for each in answer.brokers}
    topics = {each.name: _topic(each) for each in answer.topics if each.name is not None}
    return Cluster(brokers=brokers, controller_id=answer.controller_id, cluster_id=answer.cluster_id, topics=topics)


def _topic(found: Any) -> Topic:
    partitions = tuple(
        Partition(
            found.name,
            each.partition_index,
            each.leader_id,
            replicas=tuple(each.replica_nodes),
            isr=tuple(each.isr_nodes),
            error_code=each.error_code,
        )
        for each in sorted(found.partitions, key=lambda each: each.partition_index)
    )
    return Topic(found.name, partitions=partitions, error_code=found.error_code, is_internal=found.is_internal)


def _done() -> asyncio.Future[bool]:
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    future.set_result(True)
    return future
