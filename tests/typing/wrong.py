"""Forty mistakes, on the lines marked `# wrong`: type checkers report these and nothing else."""

from __future__ import annotations

from aiokwire import Admin, Client, Consumer, ConsumerConfig, Producer, ProducerConfig, RecordMetadata, TopicPartition
from aiokwire.broker import Broker


class Order:
    """A value of the user."""


def encode(order: Order) -> bytes:
    return b""


def decode(data: bytes) -> Order:
    return Order()


def encode_as_text(order: Order) -> str:
    return ""


def decode_text(data: str) -> Order:
    return Order()


def partition_by_key_alone(key: bytes | None) -> int:
    return 0


# options that do not exist, or belong to another class
Producer(linger=5)  # wrong
Producer(retries=3)  # wrong
Producer(max_poll_records=5)  # wrong
Consumer("orders", linger_ms=5)  # wrong
Consumer("orders", topics=["orders"])  # wrong
Consumer("orders", auto_ofset_reset="earliest")  # wrong
Admin(client_ids="ops")  # wrong
Admin(group_id="ops")  # wrong
Client(linger_ms=5)  # wrong
Broker(log_segment_byte=1)  # wrong

# values of another type
Producer(linger_ms="5")  # wrong
Producer(acks=None)  # wrong
Producer(batch_size=1.5)  # wrong
Producer(bootstrap_servers=9092)  # wrong
Producer({"bootstrap.servers": "localhost:9092"})  # wrong
Producer(compression_type=b"lz4")  # wrong
Producer(partitioner=partition_by_key_alone)  # wrong
Producer(value_serializer=b"json")  # wrong
Producer(value_serializer=encode_as_text)  # wrong
Consumer("orders", group_id=7)  # wrong
Consumer(["orders", "payments"])  # wrong
Consumer("orders", check_crcs="no")  # wrong
Consumer("orders", value_deserializer=decode_text)  # wrong
Consumer(partitions=["orders"])  # wrong
ConsumerConfig(max_poll_records="5")  # wrong
ProducerConfig("localhost:9092")  # wrong
Broker(num_partitions="4")  # wrong

# keys and values of another type than the serializers'
strings: Producer[bytes, str] = Producer(value_serializer=encode)  # wrong
numbers: Consumer[bytes, int] = Consumer("orders", value_deserializer=decode)  # wrong
config: ProducerConfig[bytes, str] = ProducerConfig(value_serializer=encode)  # wrong


async def produce() -> None:
    async with Producer(value_serializer=encode) as producer:
        await producer.send("orders", b"bytes")  # wrong
        await producer.send("orders", Order(), "text key")  # wrong
        await producer.send(b"orders", Order())  # wrong
        await producer.send("orders", Order(), headers={"trace": b"1"})  # wrong
        await producer.send("orders", Order(), partition="1")  # wrong
        producer.send("orders", Order())  # wrong
        producer.submit("orders", Order())  # wrong
        text: str = await producer.send("orders", Order())  # wrong
        metadata: RecordMetadata = await producer.submit("orders", Order())  # wrong
        print(text, metadata.offset)


async def consume() -> None:
    async with Consumer("orders", value_deserializer=decode) as consumer:
        consumer.getone()  # wrong
        record = await consumer.getone()
        print(record.val)  # wrong
        await consumer.getmany(TopicPartition("orders", 0))  # wrong
        for each in consumer:  # wrong
            del each
