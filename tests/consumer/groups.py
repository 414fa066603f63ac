"""Members of groups on the embedded broker, with short timeouts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import anyio

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer, RebalanceListener
from aiokwire.producer import Producer
from aiokwire.types import BrokerPattern, TopicPartition

QUICK: dict[str, Any] = {
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 2,
    "reconnect_backoff_max_ms": 10,
    "metadata_min_interval_ms": 1,
    "fetch_max_wait_ms": 50,
    "heartbeat_interval_ms": 10,
    "session_timeout_ms": 6000,
    "auto_offset_reset": "earliest",
}


def member(broker: Broker, *topics: str | re.Pattern[str] | BrokerPattern, **options: Any) -> Consumer[bytes, bytes]:
    """Return a member of group g."""
    given = {"bootstrap_servers": broker.bootstrap_servers, "group_id": "g", **QUICK, **options}
    return Consumer(*(topics or ("t",)), **given)


def t(*numbers: int) -> set[TopicPartition]:
    return {TopicPartition("t", number) for number in numbers}


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Let the loop turn until `condition` is true."""
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def assigned(reader: Consumer[Any, Any], *numbers: int) -> None:
    """Wait until the consumer is assigned these partitions of topic t."""
    await until(lambda: reader.assignment == t(*numbers))


async def fill(broker: Broker, partitions: int, count: int = 10, topic: str = "t") -> None:
    """Produce `count` records to each of the topic's partitions, one batch each."""
    async with Producer(broker.bootstrap_servers, linger_ms=50) as producer:
        for partition in range(partitions):
            for number in range(count):
                await producer.submit(topic, b"%d" % number, partition=partition)


class RecordingListener(RebalanceListener):
    """Keeps the calls that it receives, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, set[TopicPartition]]] = []

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.events.append(("assigned", set(partitions)))

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.events.append(("revoked", set(partitions)))

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        self.events.append(("lost", set(partitions)))
