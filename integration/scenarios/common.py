"""Small steps that the scenarios share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio

from aiokwire import Consumer, ConsumerRecord, Producer, RecordMetadata, TopicPartition
from integration.conftest import PARTITIONS, BrokerUnderTest

PATIENCE = 30.0  # seconds that any one step may take

Numbered = tuple[int, int]


def partitions(topic: str) -> list[TopicPartition]:
    """All partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


def consumer(broker: BrokerUnderTest, assigned: Sequence[TopicPartition], **options: Any) -> Consumer:
    """A consumer of these partitions that reads from the earliest record, unless told otherwise."""
    options.setdefault("auto_offset_reset", "earliest")
    return Consumer(partitions=assigned, bootstrap_servers=broker.bootstrap_servers, **options)


async def take(reader: Consumer, count: int) -> list[ConsumerRecord[bytes, bytes]]:
    """The next `count` records, no more.

    Raises:
        TimeoutError: they did not come.
    """
    records: list[ConsumerRecord[bytes, bytes]] = []
    with anyio.fail_after(PATIENCE):
        while len(records) < count:
            records += await reader.getmany(max_records=count - len(records), timeout=5)
    return records


async def write(
    broker: BrokerUnderTest, partition: TopicPartition, values: Sequence[bytes | None], **options: Any
) -> list[RecordMetadata]:
    """Sends values to one partition and waits for their acknowledgements."""
    async with Producer(broker.bootstrap_servers, **options) as producer:
        deliveries = [await producer.submit(partition.topic, value, partition=partition.partition) for value in values]
        with anyio.fail_after(PATIENCE):
            return [await delivery for delivery in deliveries]
