"""confluent-kafka's AIOProducer and AIOConsumer: librdkafka behind a pool of threads."""

from __future__ import annotations

import asyncio
from typing import Any

import uvloop
from confluent_kafka import TopicPartition
from confluent_kafka.aio import AIOConsumer, AIOProducer

from integration.bench.clients.tasks import awaited_sends
from integration.bench.meter import PARTITIONS, Figures, Job, Meter

_OUTSTANDING = 50_000


def produce(job: Job) -> Figures:
    return uvloop.run(_produce(job))


def consume(job: Job) -> Figures:
    return uvloop.run(_consume(job))


def send(job: Job) -> Figures:
    return uvloop.run(_send(job))


async def _produce(job: Job) -> Figures:
    options = {"bootstrap.servers": job.bootstrap, "acks": "all", "compression.type": job.compression}
    producer = AIOProducer(options, batch_size=10_000)
    await producer.list_topics(topic=job.topic)
    values = job.values()
    waiting: list[asyncio.Future[Any]] = []
    meter = Meter()
    meter.start()
    for value in values:
        waiting.append(await producer.produce(job.topic, value))
        if len(waiting) >= _OUTSTANDING:
            await producer.flush()
            for delivery in waiting:
                await delivery
            waiting.clear()
    await producer.flush()
    for delivery in waiting:
        await delivery
    figures = meter.stop(job.count)
    await producer.close()
    return figures


async def _send(job: Job) -> Figures:
    producer = AIOProducer({"bootstrap.servers": job.bootstrap, "acks": "all"})
    await producer.list_topics(topic=job.topic)

    async def send(value: bytes) -> None:
        await (await producer.produce(job.topic, value))

    figures = await awaited_sends(job, send)
    await producer.close()
    return figures


async def _consume(job: Job) -> Figures:
    consumer = AIOConsumer({"bootstrap.servers": job.bootstrap, "group.id": job.topic, "enable.auto.commit": False})
    await consumer.list_topics(topic=job.topic)
    meter = Meter()
    meter.start()
    await consumer.assign([TopicPartition(job.topic, partition, 0) for partition in range(PARTITIONS)])
    seen = size = 0
    while seen < job.count:
        records = await consumer.consume(num_messages=10_000, timeout=1.0)
        seen += len(records)
        for record in records:
            size += len(record.value())
    figures = meter.stop(seen)
    await consumer.close()
    return figures
