"""Helpers that the scenarios share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio

from aiokwire import Consumer, ConsumerRecord, Producer, RecordMetadata, TopicPartition
from integration.conftest import PARTITIONS, BrokerUnderTest

PATIENCE = 30.0  # the timeout of a step, in seconds

Numbered = tuple[int, int]


def partitions(topic: str) -> list[TopicPartition]:
    """Return all partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def consumer(broker: BrokerUnderTest, assigned: Sequence[TopicPartition], **options: Any) -> Consumer:
    """Create a consumer of these partitions, which starts at the earliest record by default."""
    options.setdefault("auto_offset_reset", "earliest")
    return Consumer(partitions=assigned, bootstrap_servers=broker.bootstrap_servers, **options)


async def take(reader: Consumer, count: int) -> list[ConsumerRecord[bytes, bytes]]:
    """Return the next `count` records.

    Raises:
        TimeoutError: they did not arrive in time.
    """
    records: list[ConsumerRecord[bytes, bytes]] = []
    with anyio.fail_after(PATIENCE):
        while len(records) < count:
            records += await reader.getmany(max_records=count - len(records), timeout=5)
    return records


async def write(
    broker: BrokerUnderTest, partition: TopicPartition, values: Sequence[bytes | None], **options: Any
) -> list[RecordMetadata]:
    """Send values to one partition and wait for their acknowledgements."""
    async with Producer(broker.bootstrap_servers, **options) as producer:
        deliveries = [await producer.submit(partition.topic, value, partition=partition.partition) for value in values]
        with anyio.fail_after(PATIENCE):
            return [await delivery for delivery in deliveries]
