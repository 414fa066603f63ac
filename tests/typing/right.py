"""Forty uses of the API that type checkers accept; checked, never run."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import re
from collections.abc import Sequence
from typing import Any, assert_type

import aiokwire
from aiokwire import (
    Acks,
    Admin,
    Client,
    Compression,
    Consumer,
    ConsumerConfig,
    ConsumerRecord,
    Delivery,
    Headers,
    Producer,
    ProducerConfig,
    RecordMetadata,
    TopicPartition,
)
from aiokwire.broker import Broker


class Order:
    """A value of the user."""

    def encode(self) -> bytes:
        return b"{}"

    @classmethod
    def decode(cls, data: bytes) -> Order:
        return cls()


def encode(order: Order) -> bytes:
    return order.encode()


async def encode_with_registry(order: Order) -> bytes:
    return order.encode()


def encode_for_topic(order: Order, topic: str, headers: Headers) -> bytes | None:
    return order.encode() if topic else None


async def decode_with_registry(data: bytes) -> Order:
    return Order()


untyped: Any = json.loads


def by_length(topic: str, key: bytes | None, value: bytes | None, partitions: Sequence[int]) -> int:
    return partitions[len(value or b"") % len(partitions)]


# Serializers, deserializers, a config or an annotation give the types of keys and values.
assert_type(Producer(), Producer[bytes, bytes])
assert_type(Producer("localhost:9092", linger_ms=3), Producer[bytes, bytes])
assert_type(Producer(value_serializer=encode), Producer[bytes, Order])
assert_type(Producer(value_serializer=Order.encode), Producer[bytes, Order])
assert_type(Producer(value_serializer=encode_with_registry), Producer[bytes, Order])
assert_type(Producer(value_serializer=encode_for_topic), Producer[bytes, Order])
assert_type(Producer(key_serializer=str.encode), Producer[str, bytes])
assert_type(Producer(key_serializer=str.encode, value_serializer=encode), Producer[str, Order])
assert_type(Producer(config=ProducerConfig(value_serializer=encode)), Producer[bytes, Order])
assert_type(Producer(value_serializer=untyped), Producer[bytes, Any])
assert_type(Consumer("orders"), Consumer[bytes, bytes])
assert_type(Consumer("orders", value_deserializer=Order.decode), Consumer[bytes, Order])
assert_type(Consumer("orders", value_deserializer=json.loads), Consumer[bytes, Any])
assert_type(Consumer("orders", key_deserializer=bytes.decode, value_deserializer=Order.decode), Consumer[str, Order])
assert_type(Consumer("orders", config=ConsumerConfig(value_deserializer=Order.decode)), Consumer[bytes, Order])
assert_type(Consumer("orders", value_deserializer=untyped), Consumer[bytes, Any])
asynchronous: Consumer[bytes, Order] = Consumer("orders", value_deserializer=decode_with_registry)
annotated: Producer[str, Order] = Producer(key_serializer=str.encode, value_serializer=encode)
anything: Producer[bytes, Any] = Producer(value_serializer=lambda value: json.dumps(value).encode())


def takes_bytes(producer: Producer, consumer: Consumer) -> None:
    """`Producer` without parameters has keys and values of bytes."""


takes_bytes(Producer(), Consumer("orders"))

# Options have the types of their configs; choices may be enums, strings or numbers.
Producer(acks="all", compression_type="zstd", compression_level=3, partitioner="round_robin", enable_idempotence=None)
Producer(acks=Acks.LEADER, compression_type=Compression.LZ4, partitioner=by_length, max_request_size=1 << 20)
Producer(["a:9092", "b:9092"], transactional_id="billing-1", transaction_timeout_ms=10_000, request_timeout_ms=1e4)
Consumer("orders", "payments", bootstrap_servers="a:9092", group_id="billing", auto_offset_reset="earliest")
Consumer(re.compile("orders-.*"), group_id="billing", partition_assignment_strategy=["range", "roundrobin"])
Consumer(partitions=[TopicPartition("orders", 0)], auto_offset_reset=datetime.timedelta(hours=1))
Consumer("orders", bootstrap_servers=os.environ.get("KAFKA", "localhost:9092").split(","), enable_auto_commit="acked")
Admin("localhost:9092", client_id="ops", default_api_timeout_ms=5_000)
Client("localhost:9092", metadata_max_age_ms=60_000)
Broker("data", listen="127.0.0.1:0", log_segment_bytes=1 << 20, auto_create_topics=False)


async def produce() -> None:
    async with Producer(key_serializer=str.encode, value_serializer=encode) as producer:
        assert_type(await producer.send("orders", Order(), "42"), RecordMetadata)
        delivery = await producer.submit("orders", Order(), key="42", headers=[("trace", b"1")])
        assert_type(delivery, Delivery)
        assert_type(await delivery, RecordMetadata)
        assert_type(producer.submit_nowait("orders", None, key="42"), Delivery)
        task = asyncio.create_task(producer.send("orders", Order()))  # noqa: TID251 - a user may
        assert_type(await task, RecordMetadata)
        pending = asyncio.create_task(producer.submit("orders", Order()))  # noqa: TID251 - a user may
        assert_type(await pending, Delivery)
        await producer.send_many("orders", [Order(), None])
        await producer.flush(timeout=5)


async def consume() -> None:
    async with Consumer("orders", group_id="g", value_deserializer=Order.decode) as consumer:
        async for record in consumer:
            assert_type(record, ConsumerRecord[bytes, Order])
            assert_type(record.value, Order | None)
        assert_type(await consumer.getone(timeout=1), ConsumerRecord[bytes, Order])
        assert_type(await consumer.getmany(500, timeout=1.0), list[ConsumerRecord[bytes, Order]])
        for stream in consumer.streams(2):
            async for each in stream:
                assert_type(each.key, bytes | None)
        await consumer.commit()


async def transact() -> None:
    async with aiokwire.Producer(transactional_id="billing-1") as producer, producer.transaction():
        await producer.send("orders", b"paid")
