"""Producers and consumers of the tests with faults on demand, short ways to write and to read."""

from __future__ import annotations

from typing import Any

import anyio

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.producer import Producer
from aiokwire.protocol.messages import produce
from aiokwire.types import TopicPartition

Quick = dict[str, Any]
ONE = TopicPartition("one", 0)


def numbers(count: int, start: int = 0) -> list[bytes]:
    """Values that differ."""
    return [b"%d" % number for number in range(start, start + count)]


def writer(broker: Broker, quick: Quick, **options: Any) -> Producer[bytes, bytes]:
    """A producer that does not linger."""
    return Producer(broker.bootstrap_servers, **{"linger_ms": 0, **quick, **options})


def reader_of(broker: Broker, quick: Quick, *topics: str, **options: Any) -> Consumer[bytes, bytes]:
    """A consumer without a group, from the first record on."""
    return Consumer(
        *topics,
        bootstrap_servers=broker.bootstrap_servers,
        **{"auto_offset_reset": "earliest", "fetch_max_wait_ms": 30, **quick, **options},
    )


async def fill(broker: Broker, values: list[bytes], topic: str = "one", partition: int = 0, **options: Any) -> None:
    """Write these values; `options` are those of `Producer.submit`."""
    async with Producer(broker.bootstrap_servers) as producer:
        for value in values:
            await producer.submit(topic, value, partition=partition, **options)
        await producer.flush()


async def read(reader: Consumer[bytes, bytes], count: int) -> list[bytes | None]:
    """Read at least `count` values."""
    seen: list[bytes | None] = []
    with anyio.fail_after(10):
        while len(seen) < count:
            seen += [record.value for record in await reader.getmany()]
    return seen


def values(broker: Broker, topic: str = "one", partition: int | None = None) -> list[bytes | None]:
    """Return the values that the broker has."""
    return [record.value for record in broker.records(topic, partition)]


def batches_sent(broker: Broker) -> list[bytes]:
    """Return the batches of all produce requests, in order."""
    return [
        bytes(part.records or b"")
        for request in broker.journal.requests(produce.ProduceRequest)
        for topic in request.topic_data
        for part in topic.partition_data
    ]
