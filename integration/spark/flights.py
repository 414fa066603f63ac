"""The flights of the demo in a topic, each with its own timestamp."""

from __future__ import annotations

import functools
from typing import Any, Final

from aiokwire import Admin, Consumer, Producer
from aiokwire.cli.demo.flights import load_flights
from aiokwire.types import TopicPartition
from integration.conftest import PARTITIONS, BrokerUnderTest

# One flight every three seconds from BEGIN: COUNT flights take five days.
BEGIN: Final = 1_356_998_400_000  # 2013-01-01
COUNT: Final = 120_000

flights = functools.cache(load_flights)


async def create(broker: BrokerUnderTest, topic: str) -> None:
    """Create a topic that keeps old records."""
    async with Admin(broker.bootstrap_servers) as admin:
        await admin.create_topic(topic, PARTITIONS, configs={"retention.ms": "-1"}, replication_factor=1)


async def send(broker: BrokerUnderTest, topic: str, numbers: range) -> None:
    """Send these flights, partitioned by key."""
    found = flights()
    async with Producer(broker.bootstrap_servers, compression_type="lz4", linger_ms=20) as producer:
        for number in numbers:
            await producer.submit(topic, found.values[number], key=found.keys[number], timestamp=BEGIN + 3000 * number)


async def read(broker: BrokerUnderTest, topic: str) -> list[tuple[int, int]]:
    """Return partition and number of each committed flight, in the order of each partition."""
    options: dict[str, Any] = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    async with Consumer(topic, bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        ends = await consumer.end_offsets(places)
        found: list[tuple[int, int]] = []
        while [place for place in places if await consumer.position(place) < ends[place]]:
            records = await consumer.getmany(timeout=0.05)
            found += [(record.partition, number_of(record.value or b"")) for record in records]
    return found


def number_of(value: bytes) -> int:
    """Return the number of a flight."""
    return int(value[len(b'{"id":') : value.index(b",")])
