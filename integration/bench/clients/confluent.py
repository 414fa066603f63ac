"""confluent-kafka's plain Producer and Consumer (librdkafka).

The producer is not idempotent, which is its default, and has no delivery callbacks: both would only
slow it down. Linger and batch size are set explicitly to their current defaults.
"""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition

from integration.bench.meter import PARTITIONS, Figures, Job, Meter

_POLL_EVERY = 10_000
_ROUND_TRIP_SECONDS = 30.0


def produce(job: Job) -> Figures:
    producer = Producer(
        {
            **job.librdkafka(),
            "acks": "all",
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 1_000_000,
            "compression.type": job.compression,
        }
    )
    producer.list_topics(job.topic, timeout=_ROUND_TRIP_SECONDS)
    values, topic, append = job.values(), job.topic, producer.produce
    meter = Meter()
    meter.start()
    for number, value in enumerate(values):
        while True:
            try:
                append(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        if number % _POLL_EVERY == 0:
            producer.poll(0)
    if left := producer.flush(_ROUND_TRIP_SECONDS):
        raise RuntimeError(f"{left} records were not acknowledged")
    return meter.stop(job.count)


def consume(job: Job) -> Figures:
    consumer = Consumer({**job.librdkafka(), "group.id": job.topic, "enable.auto.commit": False})
    consumer.list_topics(job.topic, timeout=_ROUND_TRIP_SECONDS)
    meter = Meter()
    meter.start()
    consumer.assign([TopicPartition(job.topic, partition, 0) for partition in range(PARTITIONS)])
    seen = size = 0
    while seen < job.count:
        records = consumer.consume(10_000, timeout=1.0)
        seen += len(records)
        for record in records:
            size += len(record.value() or b"")
    figures = meter.stop(seen)
    consumer.close()
    return figures
