"""aiokafka on uvloop, with the batch size and linger that are fastest here."""

from __future__ import annotations

import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped]  # no types

from integration.bench.clients.tasks import awaited_sends
from integration.bench.meter import PARTITIONS, Figures, Job, Meter


def produce(job: Job) -> Figures:
    return uvloop.run(_produce(job))


def consume(job: Job) -> Figures:
    return uvloop.run(_consume(job))


def iterate(job: Job) -> Figures:
    return uvloop.run(_iterate(job))


def send(job: Job) -> Figures:
    return uvloop.run(_send(job))


async def _produce(job: Job) -> Figures:
    producer = AIOKafkaProducer(
        bootstrap_servers=job.bootstrap,
        acks="all",
        linger_ms=5,
        max_batch_size=131_072,
        compression_type=None if job.compression == "none" else job.compression,
    )
    async with producer:
        await producer.partitions_for(job.topic)
        values, topic, send = job.values(), job.topic, producer.send
        meter = Meter()
        meter.start()
        for value in values:
            await send(topic, value)
        await producer.flush()
        return meter.stop(job.count)


async def _send(job: Job) -> Figures:
    producer = AIOKafkaProducer(bootstrap_servers=job.bootstrap, acks="all", max_batch_size=262_144)
    async with producer:
        await producer.partitions_for(job.topic)
        topic = job.topic

        async def send(value: bytes) -> None:
            await producer.send_and_wait(topic, value)

        return await awaited_sends(job, send)


def _consumer(job: Job) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(bootstrap_servers=job.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)


async def _consume(job: Job) -> Figures:
    async with _consumer(job) as consumer:
        meter = Meter()
        meter.start()
        consumer.assign([TopicPartition(job.topic, partition) for partition in range(PARTITIONS)])
        seen = size = 0
        while seen < job.count:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                seen += len(records)
                for record in records:
                    size += len(record.value)
        return meter.stop(seen)


async def _iterate(job: Job) -> Figures:
    async with _consumer(job) as consumer:
        meter = Meter()
        meter.start()
        consumer.assign([TopicPartition(job.topic, partition) for partition in range(PARTITIONS)])
        seen = size = 0
        async for record in consumer:
            size += len(record.value)
            seen += 1
            if seen == job.count:
                break
        return meter.stop(seen)
