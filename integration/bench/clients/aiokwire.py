"""aiokwire on uvloop, with its defaults."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

import uvloop

from aiokwire import Consumer, Producer, TopicPartition
from integration.bench.clients.tasks import awaited_sends
from integration.bench.meter import PARTITIONS, Figures, Job, Meter

if TYPE_CHECKING:
    import pyarrow

_CHUNK = 100_000  # most records that one call may return


def produce(job: Job) -> Figures:
    return uvloop.run(_produce(job))


def consume(job: Job) -> Figures:
    return uvloop.run(_consume(job))


def iterate(job: Job) -> Figures:
    return uvloop.run(_iterate(job))


def arrow(job: Job) -> Figures:
    return uvloop.run(_arrow(job, _by_batches))


def getarrow(job: Job) -> Figures:
    return uvloop.run(_arrow(job, _by_getarrow))


def send(job: Job) -> Figures:
    return uvloop.run(_send(job))


async def _produce(job: Job) -> Figures:
    async with Producer(compression_type=job.compression, **job.aiokwire()) as producer:
        values, topic, submit = job.values(), job.topic, producer.submit
        # load the topic's metadata and connect, as the peers do at their start
        await producer.send(topic, job.value())
        meter = Meter()
        meter.start()
        for value in values:
            await submit(topic, value)
        await producer.flush()
        return meter.stop(job.count)


async def _send(job: Job) -> Figures:
    async with Producer(**job.aiokwire()) as producer:
        topic = job.topic
        await producer.send(topic, job.value())

        async def send(value: bytes) -> None:
            await producer.send(topic, value)

        return await awaited_sends(job, send)


def _consumer(job: Job) -> Consumer:
    return Consumer(auto_offset_reset="earliest", **job.aiokwire())


async def _consume(job: Job) -> Figures:
    async with _consumer(job) as consumer:
        meter = Meter()
        meter.start()
        await consumer.assign([TopicPartition(job.topic, partition) for partition in range(PARTITIONS)])
        seen = size = 0
        while seen < job.count:
            records = await consumer.getmany(max_records=_CHUNK)
            seen += len(records)
            for record in records:
                size += len(record.value)  # type: ignore[arg-type]  # the topic has no nulls
        return meter.stop(seen)


async def _iterate(job: Job) -> Figures:
    async with _consumer(job) as consumer:
        meter = Meter()
        meter.start()
        await consumer.assign([TopicPartition(job.topic, partition) for partition in range(PARTITIONS)])
        seen = size = 0
        async for record in consumer:
            size += len(record.value)  # type: ignore[arg-type]  # the topic has no nulls
            seen += 1
            if seen == job.count:
                break
        return meter.stop(seen)


async def _by_batches(consumer: Consumer[bytes, bytes]) -> AsyncGenerator[pyarrow.RecordBatch]:
    async for batch in consumer.batches():
        yield batch.to_arrow()


async def _by_getarrow(consumer: Consumer[bytes, bytes]) -> AsyncGenerator[pyarrow.RecordBatch]:
    while True:
        yield await consumer.getarrow()


async def _arrow(job: Job, read: Callable[[Consumer[bytes, bytes]], AsyncGenerator[pyarrow.RecordBatch]]) -> Figures:
    importlib.import_module("pyarrow")  # its import takes longer than many batches
    partitions = [TopicPartition(job.topic, partition) for partition in range(PARTITIONS)]
    async with _consumer(job) as consumer, contextlib.aclosing(read(consumer)) as found:
        meter = Meter()
        meter.start()
        await consumer.assign(partitions)
        seen, half = 0, job.count // 2
        async for columns in found:
            before, seen = seen, seen + columns.num_rows
            if seen >= job.count:
                break
            if before < half <= seen:
                await consumer.seek_to_beginning(*partitions)
        return meter.stop(seen)
