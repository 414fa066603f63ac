"""`AIOKafkaConsumer` keeps what aiokafka documents, and what published programs rely on."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import anyio

from aiokwire.broker import Broker
from aiokwire.compat.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition


async def test_a_record_sent_after_the_start_is_read_without_committed_offsets(broker: Broker) -> None:
    address = broker.bootstrap_servers
    for group in ("billing", None):
        async with AIOKafkaProducer(bootstrap_servers=address) as producer:
            await producer.partitions_for("orders")
            async with AIOKafkaConsumer("orders", bootstrap_servers=address, group_id=group) as consumer:
                await producer.send_and_wait("orders", b"paid")
                with anyio.fail_after(20):
                    assert (await consumer.getone()).value == b"paid"


async def test_a_start_returns_if_there_are_no_offsets_and_no_reset(broker: Broker) -> None:
    options: dict[str, Any] = {"bootstrap_servers": broker.bootstrap_servers, "group_id": "billing"}
    async with AIOKafkaConsumer("orders", auto_offset_reset="none", **options) as consumer:
        assert len(consumer.assignment()) == 2


class MemberListener(ConsumerRebalanceListener):
    """Reads the member as FastStream's listener does."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self.consumer = consumer
        self.seen: list[tuple[str, int]] = []

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Nothing is kept."""

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """Remember the member."""
        coordinator = self.consumer._coordinator
        self.seen.append((coordinator.member_id, coordinator.generation))


async def test_a_listener_reads_the_member_and_its_generation(broker: Broker) -> None:
    address = broker.bootstrap_servers
    consumer = AIOKafkaConsumer(bootstrap_servers=address, group_id="billing", client_id="till")
    assert (consumer._coordinator.member_id, consumer._coordinator.generation) == ("", -1)
    listener = MemberListener(consumer)
    consumer.subscribe(["orders"], listener=listener)
    async with consumer:
        ((member_id, generation),) = listener.seen
        assert member_id.startswith("till-")
        assert generation == 1
        assert consumer._coordinator.coordinator_id == 1
        assert consumer._subscription.topics == {"orders"}


async def test_without_a_group_the_member_has_no_id(broker: Broker) -> None:
    async with AIOKafkaConsumer("orders", bootstrap_servers=broker.bootstrap_servers) as consumer:
        coordinator = consumer._coordinator
        assert (coordinator.member_id, coordinator.generation, coordinator.coordinator_id) == ("", -1, None)
