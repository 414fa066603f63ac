"""A client's metadata of its cluster, with aiokafka's names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiokwire.cluster import Client, Cluster
from aiokwire.compat.aiokafka.errors import for_code
from aiokwire.compat.aiokafka.structs import BrokerMetadata, PartitionMetadata
from aiokwire.error_codes import ErrorCode
from aiokwire.types import TopicPartition


class ClusterMetadata:
    """A view of the newest metadata of a client; of no cluster before its start."""

    def __init__(self, client: Client | None = None, **_configs: Any) -> None:
        """aiokafka's options (`bootstrap_servers`, ...) are accepted; those of the client apply."""
        self._client = client
        self.need_all_topic_metadata = False

    @property
    def _cluster(self) -> Cluster:
        return Cluster() if self._client is None else self._client.cluster

    @property
    def _brokers(self) -> dict[int, BrokerMetadata]:
        return {
            each.node_id: BrokerMetadata(each.node_id, each.host, each.port, each.rack)
            for each in self._cluster.brokers.values()
        }

    @property
    def controller(self) -> BrokerMetadata | None:
        """The controller, or the broker that forwards to it."""
        return self._brokers.get(self._cluster.controller_id)

    @property
    def unauthorized_topics(self) -> set[str]:
        """The topics that this client may not read."""
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return {name for name, topic in self._cluster.topics.items() if topic.error_code == code}

    @property
    def internal_topics(self) -> set[str]:
        """The topics that belong to Kafka itself."""
        return {name for name, topic in self._cluster.topics.items() if topic.is_internal}

    def brokers(self) -> set[BrokerMetadata]:
        """Return all known brokers."""
        return set(self._brokers.values())

    def broker_metadata(self, broker_id: int) -> BrokerMetadata | None:
        """Return a broker by its id."""
        return self._brokers.get(broker_id)

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """Return the topics whose partitions are known."""
        return {
            name
            for name, topic in self._cluster.topics.items()
            if topic.partitions and not (exclude_internal_topics and topic.is_internal)
        }

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic; None if it is not known."""
        found = self._cluster.topics.get(topic)
        return {each.partition for each in found.partitions} if found is not None and found.partitions else None

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        """Return the partitions of a topic that have a leader; None if it is not known."""
        found = self._cluster.topics.get(topic)
        if found is None or not found.partitions:
            return None
        return {each.partition for each in found.partitions if each.leader >= 0}

    def leader_for_partition(self, partition: TopicPartition) -> int | None:
        """Return the leader's node id; -1 without a leader, None if the partition is not known."""
        found = self._cluster.partition(partition)
        return None if found is None else found.leader

    def partitions_for_broker(self, broker_id: int) -> set[TopicPartition] | None:
        """Return the partitions that a broker leads; None if it leads none."""
        led = {
            TopicPartition(name, each.partition)
            for name, topic in self._cluster.topics.items()
            for each in topic.partitions
            if each.leader == broker_id
        }
        return led or None

    def partition_metadata(self, topic: str, partition: int) -> PartitionMetadata | None:
        """Return a partition with its leader and replicas."""
        found = self._cluster.partition(TopicPartition(topic, partition))
        if found is None:
            return None
        error = for_code(found.error_code)() if found.error_code else None
        return PartitionMetadata(topic, partition, found.leader, list(found.replicas), list(found.isr), error)

    def all_partitions(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Return the partitions of topics in order."""
        return [TopicPartition(name, each) for name in topics for each in sorted(self.partitions_for_topic(name) or ())]

    def __repr__(self) -> str:
        cluster = self._cluster
        return f"<ClusterMetadata {len(cluster.brokers)} brokers, {len(cluster.topics)} topics>"
