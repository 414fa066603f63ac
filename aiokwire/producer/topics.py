"""The topics of a producer: their partitions, leaders and message formats.

Follows the metadata; reports partitions with batches to send, and batches whose topic is not found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

from aiokwire._text import printable
from aiokwire.backoff import Deadline
from aiokwire.cluster import Client, Cluster
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthenticationFailed,
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

Hints = list[tuple[Partition, produce.LeaderIdAndEpoch]]  # the leaders that one response names


class Topics:
    """Keeps the accumulator's topics in step with the metadata.

    `on_ready(partition)`: it has batches and a leader; `on_unknown(batch, error)`: no such topic.
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
        self._hints: Hints | None = None  # collect the hints of the response that is handled now
        self._followed = client.cluster  # the last snapshot that was applied

    async def resolve(self, topic: Topic) -> None:
        """Find a new topic's partitions; place waiting records, or fail them with the reason."""
        deadline = Deadline(self._config.delivery_timeout, "")
        backoff = self._client.new_backoff()
        try:
            while True:
                try:
                    await self._found(topic.name, deadline.remaining)
                    return
                except AuthenticationFailed:  # the next connection uses corrected credentials
                    if deadline.expired:
                        raise
                await self._client.pause(min(backoff.next(), deadline.remaining))
        except KafkaError as error:
            parked = self._accumulator.forget_topic(topic)
            if parked is not None:
                self._on_unknown(parked, _unresolved(parked, error, self._client.metadata.explain_unknown))

    async def partitions_for(self, name: str) -> int:
        """The number of a topic's partitions; waits for its metadata.

        Raises: KafkaError: the topic is not found.
        """
        return (await self._found(name, self._config.delivery_timeout)).count

    async def _found(self, name: str, timeout: float) -> Topic:
        await self._client.metadata.wait_for_topics([name], timeout, unknown_timeout=self._config.unknown_topic_timeout)
        await self._learn_formats(self._client.cluster, name)
        # No await from here on, so that no record is parked meanwhile.
        topic = self._accumulator.topics.get(name) or self._accumulator.add_topic(name)
        if not topic.count:
            self._set_partitions(self._client.cluster, topic)
        return topic

    async def _learn_formats(self, cluster: Cluster, name: str) -> None:
        """Get a leader's versions before the first encoding; others follow with their batches."""
        for partition in cluster.topics[name].partitions:
            if partition.leader >= 0 and partition.leader not in self._formats:
                try:
                    await self.connect(partition.leader)
                except KafkaError:
                    continue  # its sender reports the error
            if partition.leader >= 0:
                return

    async def connect(self, node_id: int) -> Connection:
        """A ready connection to a node, whose message format is recorded.

        Raises: KafkaError: the node cannot be reached, or does not serve Produce.
        """
        connection = await self._client.connection(node_id)
        self._formats[node_id] = planning.format_of(connection.versions.pick(produce.ProduceRequest))
        return connection

    def on_cluster(self, cluster: Cluster) -> None:
        """Apply moved leaders and new partitions; topics that did not change are skipped."""
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
                partition.hold(0.0)  # the new leader may accept what the old one refused
                moved[partition.index] = partition.leader
            if partition.queue and partition.leader >= 0:
                self._on_ready(partition)
        if moved and self._events.wanted:
            self._events.publish(LeadersChanged(topic.name, moved))

    def refresh(self, topic: str, reason: str) -> None:
        """Request newer metadata of a topic."""
        self._client.metadata.want([topic])
        self._client.metadata.request_update(reason)

    def on_leader(self, partition: Partition, hint: produce.LeaderIdAndEpoch) -> None:
        """Apply the leader that a response names (KIP-951), or collect it."""
        if self._hints is not None:
            self._hints.append((partition, hint))
            return
        self._client.metadata.update_leader(
            TopicPartition(partition.topic, partition.index), hint.leader_id, hint.leader_epoch
        )

    @contextmanager
    def gather(self, hints: Hints) -> Generator[None]:
        """Collect the hints of a response handled in turns: each update looks at all partitions."""
        self._hints = hints
        try:
            yield
        finally:
            self._hints = None

    def topic_id(self, topic: str) -> bytes:
        """The topic's id; zeros when it has none."""
        return self._client.cluster.topic_id(topic) or ZERO_UUID

    def partition_of(self, batch: Batch) -> Partition | None:
        """The partition of a batch; None while it is not known."""
        topic = self._accumulator.topics.get(batch.topic)
        return None if topic is None or batch.partition < 0 else topic.partitions[batch.partition]


def _unresolved(parked: Batch, error: KafkaError, explain: Callable[[str], str]) -> KafkaError:
    """`explain` returns the cause of a topic that does not exist."""
    if not isinstance(error, (AuthenticationFailed, RequestTimedOut, ConnectionFailed, RetriableError)):
        return error  # permanent: waiting would not help
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
