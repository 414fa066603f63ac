"""The topics that are produced to: their partitions, who leads them, and in which message format.

Follows the client's metadata, and reports partitions whose batches may leave and batches whose topic cannot be found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiokwire._text import printable
from aiokwire.cluster import Client, Cluster
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    ConnectionFailed,
    DeliveryFailed,
    KafkaError,
    RequestTimedOut,
    RetriableError,
    StaleMetadataError,
)
from aiokwire.events import Events
from aiokwire.net import Connection
from aiokwire.producer import planning
from aiokwire.producer._accumulator import Accumulator
from aiokwire.producer._delivery import Batch
from aiokwire.producer._partition import Partition, Topic
from aiokwire.producer.config import ProducerConfig
from aiokwire.producer.events import LeadersChanged, ProducerEvent
from aiokwire.protocol import ZERO_UUID
from aiokwire.protocol.messages import produce
from aiokwire.types import TopicPartition


class Hints:
    """Who leads partitions, as one answer says: kept within `with` blocks, until they are applied."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.kept: list[tuple[Partition, produce.LeaderIdAndEpoch]] = []

    def __enter__(self) -> None:
        self._topics.gather_into(self)

    def __exit__(self, *_: object) -> None:
        self._topics.gather_into(None)

    def apply(self) -> None:
        """In one snapshot."""
        for partition, hint in self.kept:
            self._topics.on_leader(partition, hint)


class Topics:
    """Keeps the accumulator's topics as the metadata has them.

    `on_ready(partition)`: it has batches, and a leader; `on_unknown(batch, error)`: these records' topic cannot be had.
    """

    def __init__(
        self,
        client: Client,
        config: ProducerConfig,
        accumulator: Accumulator,
        *,
        on_ready: Callable[[Partition], None],
        on_unknown: Callable[[Batch, KafkaError], None],
        events: Events[ProducerEvent],
    ) -> None:
        self._client = client
        self._config = config
        self._accumulator = accumulator
        self._on_ready = on_ready
        self._on_unknown = on_unknown
        self._events = events
        self._formats: dict[int, int] = {}  # message format by node id
        self._hints: Hints | None = None  # where hints are gathered just now
        self._followed = client.cluster  # the snapshot whose changes were taken over last

    def follow(self) -> None:
        """Begin to listen to the metadata."""
        self._client.metadata.add_listener(self._on_cluster)

    def unfollow(self) -> None:
        """Listen no longer."""
        self._client.metadata.remove_listener(self._on_cluster)

    def keep(self, batch: Batch) -> None:
        """A topic that records are sent to stays in the metadata (Java's ProducerMetadata does the same)."""
        self._client.metadata.keep(batch.topic, batch.created)

    async def resolve(self, topic: Topic) -> None:
        """Find a new topic's partitions; what waits for them is placed, or fails with the reason."""
        try:
            await self._found(topic.name)
        except KafkaError as error:
            parked = self._accumulator.forget_topic(topic)
            if parked is not None:
                self._on_unknown(parked, _unresolved(parked, error, self._client.metadata.explain_unknown))

    async def partitions_for(self, name: str) -> int:
        """How many partitions a topic has; waits for its metadata.

        Raises: KafkaError: the topic cannot be had.
        """
        return (await self._found(name)).count

    async def _found(self, name: str) -> Topic:
        await self._client.metadata.wait_for_topics(
            [name], self._config.delivery_timeout, unknown_timeout=self._config.unknown_topic_timeout
        )
        await self._learn_formats(self._client.cluster, name)
        # Nothing waits from here on, so that no record can be parked behind our back.
        topic = self._accumulator.topics.get(name) or self._accumulator.add_topic(name)
        if not topic.count:
            self._set_partitions(self._client.cluster, topic)
        return topic

    async def _learn_formats(self, cluster: Cluster, name: str) -> None:
        """Ask one leader for its versions before the first record is encoded; the others when they are sent to."""
        for partition in cluster.topics[name].partitions:
            if partition.leader >= 0 and partition.leader not in self._formats:
                try:
                    await self.connect(partition.leader)
                except KafkaError:
                    continue  # its sender will say so
            if partition.leader >= 0:
                return

    async def connect(self, node_id: int) -> Connection:
        """A ready connection to a node; remembers which message format it takes.

        Raises: KafkaError: there is none, or the node takes no records.
        """
        connection = await self._client.connection(node_id)
        self._formats[node_id] = planning.format_of(connection.versions.pick(produce.ProduceRequest))
        return connection

    def _on_cluster(self, cluster: Cluster) -> None:
        """New metadata: leaders may have moved, partitions been added. Topics that did not change are skipped."""
        before, self._followed = self._followed, cluster
        for topic in list(self._accumulator.topics.values()):
            known = cluster.topics.get(topic.name)
            if topic.count and known is not None and known.partitions and known is not before.topics.get(topic.name):
                self._set_partitions(cluster, topic)

    def _set_partitions(self, cluster: Cluster, topic: Topic) -> None:
        before = [partition.leader for partition in topic.partitions]
        fallback = min(self._formats.values(), default=2)
        leaders = [partition.leader for partition in cluster.topics[topic.name].partitions]
        self._accumulator.set_partitions(topic, leaders, [self._formats.get(node, fallback) for node in leaders])
        moved: dict[int, int] = {}
        for partition, was in zip(topic.partitions, before, strict=False):
            if partition.leader != was:
                partition.retry_at = 0.0  # what failed there may succeed here
                moved[partition.index] = partition.leader
            if partition.queue and partition.leader >= 0:
                self._on_ready(partition)
        if moved and self._events.wanted:
            self._events.publish(LeadersChanged(topic.name, moved))

    def refresh(self, topic: str, reason: str) -> None:
        """A topic's metadata is stale."""
        self._client.metadata.want([topic])
        self._client.metadata.request_update(reason)

    def on_leader(self, partition: Partition, hint: produce.LeaderIdAndEpoch) -> None:
        """A broker says who leads (KIP-951)."""
        if self._hints is not None:
            self._hints.kept.append((partition, hint))
            return
        self._client.metadata.update_leader(
            TopicPartition(partition.topic, partition.index), hint.leader_id, hint.leader_epoch
        )

    def gather_hints(self) -> Hints:
        """Collect the hints of an answer that is settled in several turns, to apply them together: each application
        costs a look at all partitions of the topics."""
        return Hints(self)

    def gather_into(self, hints: Hints | None) -> None:
        """Where the hints that come now are kept; None: they are applied."""
        self._hints = hints

    def topic_id(self, topic: str) -> bytes:
        """The topic's id, zeros when it has none."""
        return self._client.cluster.topic_id(topic) or ZERO_UUID

    def partition_of(self, batch: Batch) -> Partition | None:
        """Where a batch belongs; None while that is not known."""
        topic = self._accumulator.topics.get(batch.topic)
        return None if topic is None or batch.partition < 0 else topic.partitions[batch.partition]


def _unresolved(parked: Batch, error: KafkaError, explain: Callable[[str], str]) -> KafkaError:
    """`explain`: what to say of a topic that does not exist."""
    if not isinstance(error, (RequestTimedOut, ConnectionFailed, RetriableError)):
        return error  # a refusal, which no more time would have changed
    elapsed = asyncio.get_running_loop().time() - parked.created
    unknown = isinstance(error, StaleMetadataError) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    why = explain(parked.topic) if unknown else f"waiting for its metadata: {error}"
    return DeliveryFailed(
        f"{parked.remaining} record(s) for {printable(parked.topic)} were not delivered in {elapsed:.3f} s: {why}",
        topic=parked.topic,
        stage="metadata",
        elapsed=elapsed,
        last_error=error,
    )
