"""Other clients with one interface: produce messages to a partition, consume a number of them.

All calls block.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiokwire

_SECONDS = 60.0

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A record that a test sends and expects to read."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Peer:
    """A client library."""

    name: str
    produce: Callable[[str, str, int, Sequence[Message], str], None]
    consume: Callable[[str, str, int, int], list[Message]]

    def __str__(self) -> str:
        return self.name


def sample() -> list[Message]:
    """Return messages with keys, headers, nulls, non-ASCII text, and a large value."""
    large = bytes(range(256)) * 1800 + b"\0" * 460_800
    return [
        Message(b"key", b"value"),
        Message(None, b"no key"),
        Message(b"no value", None),
        Message(b"", b""),
        Message("schlüssel".encode(), "wert ✓".encode(), (("traceparent", b"00-1-1-00"), ("empty", b""))),
        Message(b"twice", b"the same header name", (("name", b"1"), ("name", b"2"), ("größe", b"\0\xff"))),
        Message(b"large", large, (("size", b"921600"),)),
        *(Message(f"k{number % 7}".encode(), f"value {number}".encode() * 3) for number in range(500)),
    ]


# --- confluent-kafka (librdkafka) ----------------------------------------------------------------------------------


def _confluent_produce(bootstrap: str, topic: str, partition: int, messages: Sequence[Message], codec: str) -> None:
    from confluent_kafka import Producer

    failures: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "acks": "all", "log_level": 0})
    for message in messages:
        producer.produce(
            topic,
            message.value,
            message.key,
            partition,
            timestamp=message.timestamp,
            headers=list(message.headers),
            on_delivery=lambda error, _: failures.append(error) if error is not None else None,
        )
    left = producer.flush(_SECONDS)
    assert not left, f"{left} messages were not acknowledged"
    assert not failures, failures


def _confluent_consume(bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    try:
        records: list[Message] = []
        while len(records) < count:
            got = consumer.consume(count - len(records), timeout=_SECONDS)
            assert got, f"{len(records)} of {count} records were read"
            for record in got:
                assert record.error() is None, record.error()
                headers: Any = record.headers() or []
                records.append(Message(record.key(), record.value(), tuple(headers), record.timestamp()[1]))
        return records
    finally:
        consumer.close()


# --- kafka-python --------------------------------------------------------------------------------------------------


@contextmanager
def unclosed_sockets_ignored() -> Iterator[None]:
    """Collect the sockets that kafka-python leaves open; a later test would fail by their warning.

    Use it as a decorator: the clients of the function are garbage when it has returned.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"unclosed <(ssl\.SSLSocket|socket\.socket) ", ResourceWarning)
        yield
        gc.collect()


def _codec(name: str) -> str | None:
    return None if name == "none" else name


@unclosed_sockets_ignored()
def _kafka_python_produce(bootstrap: str, topic: str, partition: int, messages: Sequence[Message], codec: str) -> None:
    from kafka import KafkaProducer  # type: ignore[import-untyped]  # it has no types

    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=_codec(codec), acks="all", max_request_size=2_000_000
    )
    try:
        deliveries = [
            producer.send(
                topic, message.value, message.key, list(message.headers), partition, timestamp_ms=message.timestamp
            )
            for message in messages
        ]
        producer.flush(_SECONDS)
        for delivery in deliveries:
            delivery.get(timeout=_SECONDS)
    finally:
        producer.close(timeout=5)


@unclosed_sockets_ignored()
def _kafka_python_consume(bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=_SECONDS * 1000,
    )
    consumer.assign([TopicPartition(topic, partition)])
    try:
        records: list[Message] = []
        for record in consumer:
            records.append(Message(record.key, record.value, tuple(record.headers), record.timestamp))
            if len(records) == count:
                break
        return records
    finally:
        consumer.close()


# --- aiokafka ------------------------------------------------------------------------------------------------------


def _aiokafka_produce(bootstrap: str, topic: str, partition: int, messages: Sequence[Message], codec: str) -> None:
    from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # it has no types

    async def run() -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, compression_type=_codec(codec), acks="all", max_request_size=2_000_000
        ) as producer:
            deliveries = [
                await producer.send(
                    topic,
                    message.value,
                    message.key,
                    partition,
                    timestamp_ms=message.timestamp,
                    headers=list(message.headers),
                )
                for message in messages
            ]
            for delivery in deliveries:
                await delivery

    asyncio.run(run())


def _aiokafka_consume(bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> list[Message]:
        async with AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            consumer.assign([TopicPartition(topic, partition)])
            records: list[Message] = []
            async with asyncio.timeout(_SECONDS):
                while len(records) < count:
                    record = await consumer.getone()
                    records.append(Message(record.key, record.value, tuple(record.headers), record.timestamp))
            return records

    return asyncio.run(run())


# --- aiokwire ------------------------------------------------------------------------------------------------------


def _aiokwire_produce(bootstrap: str, topic: str, partition: int, messages: Sequence[Message], codec: str) -> None:
    async def run() -> None:
        async with aiokwire.Producer(bootstrap, compression_type=codec) as producer:
            deliveries = [
                await producer.submit(
                    topic,
                    message.value,
                    key=message.key,
                    partition=partition,
                    timestamp=message.timestamp,
                    headers=message.headers or None,
                )
                for message in messages
            ]
            offsets = [(await delivery).offset for delivery in deliveries]
            assert offsets == list(range(offsets[0], offsets[0] + len(messages)))

    asyncio.run(run())


def _aiokwire_consume(bootstrap: str, topic: str, partition: int, count: int) -> list[Message]:
    return asyncio.run(_aiokwire_read(bootstrap, [aiokwire.TopicPartition(topic, partition)], count))


def consume_all(bootstrap: str, topic: str, partitions: int, count: int) -> list[Message]:
    """Read the first `count` records of all partitions with aiokwire.

    In order within each partition.
    """
    assigned = [aiokwire.TopicPartition(topic, number) for number in range(partitions)]
    return asyncio.run(_aiokwire_read(bootstrap, assigned, count))


async def _aiokwire_read(bootstrap: str, assigned: list[aiokwire.TopicPartition], count: int) -> list[Message]:
    async with aiokwire.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        await consumer.assign(assigned)
        records: list[aiokwire.ConsumerRecord[bytes, bytes]] = []
        async with asyncio.timeout(_SECONDS):
            while len(records) < count:
                records += await consumer.getmany(max_records=count - len(records), timeout=5)
        return [Message(record.key, record.value, tuple(record.headers), record.timestamp) for record in records]


OURS = Peer("aiokwire", _aiokwire_produce, _aiokwire_consume)
CONFLUENT = Peer("confluent", _confluent_produce, _confluent_consume)
OTHERS = [
    CONFLUENT,
    Peer("kafka-python", _kafka_python_produce, _kafka_python_consume),
    Peer("aiokafka", _aiokafka_produce, _aiokafka_consume),
]
