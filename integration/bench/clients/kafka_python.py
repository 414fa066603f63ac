"""kafka-python, the pure Python client."""

from __future__ import annotations

import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition  # type: ignore[import-untyped]  # it has no types

from integration.bench.meter import PARTITIONS, Figures, Job, Meter


def produce(job: Job) -> Figures:
    producer = KafkaProducer(
        bootstrap_servers=job.bootstrap,
        acks="all",
        linger_ms=20,
        batch_size=262_144,
        compression_type=None if job.compression == "none" else job.compression,
    )
    producer.partitions_for(job.topic)
    values, topic, append = job.values(), job.topic, producer.send
    meter = Meter()
    meter.start()
    for value in values:
        append(topic, value)
    producer.flush()
    figures = meter.stop(job.count)
    producer.close()
    return figures


def send(job: Job) -> Figures:
    if job.tasks > 1:
        raise ValueError("kafka-python has no awaitable sends: it can only run this row with one task")
    producer = KafkaProducer(bootstrap_servers=job.bootstrap, acks="all")
    producer.partitions_for(job.topic)
    value = job.value()
    meter = Meter()
    meter.start()
    for _ in range(job.count):
        began = time.perf_counter()
        producer.send(job.topic, value).get(timeout=30)
        meter.latency(time.perf_counter() - began)
    figures = meter.stop(job.count)
    producer.close()
    return figures


def consume(job: Job) -> Figures:
    consumer = KafkaConsumer(
        bootstrap_servers=job.bootstrap, group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    meter = Meter()
    meter.start()
    consumer.assign([TopicPartition(job.topic, partition) for partition in range(PARTITIONS)])
    seen = size = 0
    while seen < job.count:
        for records in consumer.poll(timeout_ms=1000, max_records=10_000).values():
            seen += len(records)
            for record in records:
                size += len(record.value)
    figures = meter.stop(seen)
    consumer.close()
    return figures
