"""The content of a topic as a ledger, read by our consumer or by librdkafka."""

from __future__ import annotations

import anyio

from aiokwire import Consumer, TopicPartition
from aiokwire.consumer import Batch
from integration.chaos.ledger import Ledger
from integration.chaos.records import SIZE, Malformed, read_names

_SECONDS = 300.0  # for all of a topic
_PATIENCE = 30.0  # for the next records
_MANY = 10_000


async def read(bootstrap: str, topic: str, partitions: int) -> Ledger:
    """Read every record up to the current end of the topic, as Arrow columns.

    Raises:
        Malformed: a value was not written by a run; TimeoutError: the records did not arrive.
    """
    found = Ledger(partitions)
    assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
    async with Consumer(partitions=assigned, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        ends = await consumer.end_offsets(assigned, timeout=_PATIENCE)
        missing = {partition for partition, end in ends.items() if end > 0}
        with anyio.fail_after(_SECONDS):
            batches = consumer.batches()
            while missing:
                batch = await anext(batches)
                _enter(found, batch)
                if batch.next_offset >= ends[batch.topic_partition]:
                    missing.discard(batch.topic_partition)
    return found


def _enter(found: Ledger, batch: Batch[bytes, bytes]) -> None:
    columns = batch.to_arrow()
    rows = columns.num_rows
    _, bounds, values = columns.column("value").buffers()
    offsets = columns.column("offset").buffers()[1]
    assert bounds is not None
    assert values is not None
    assert offsets is not None
    if memoryview(bounds).cast("i").tolist() != list(range(0, rows * SIZE + 1, SIZE)):
        raise Malformed(f"{batch!r}: the values are not of {SIZE} bytes each")
    names = read_names(memoryview(values))
    if names.partition != batch.partition:
        raise Malformed(f"{batch!r} has values of partition {names.partition}")
    found.add_all(batch.partition, names.numbers, memoryview(offsets).cast("q").tolist())


def read_with_librdkafka(bootstrap: str, topic: str, partitions: int) -> Ledger:
    """Read the same with another client; blocks.

    Raises:
        Malformed: a value was not written by a run; TimeoutError: the records did not arrive.
    """
    import confluent_kafka as confluent

    found = Ledger(partitions)
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "none",
            "enable.auto.commit": False,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    try:
        assigned = [confluent.TopicPartition(topic, partition, 0) for partition in range(partitions)]
        ends = [consumer.get_watermark_offsets(place, timeout=_PATIENCE)[1] for place in assigned]
        consumer.assign(assigned)
        missing = {partition for partition, end in enumerate(ends) if end > 0}
        left = sum(ends)
        while missing:
            messages = consumer.consume(min(_MANY, left), timeout=_PATIENCE)  # waits for this number of records
            left -= len(messages)
            if not messages:
                raise TimeoutError(f"no record for {_PATIENCE} s; incomplete partitions: {sorted(missing)}")
            for message in messages:
                if message.error() is not None:
                    raise confluent.KafkaException(message.error())
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                names = read_names(message.value() or b"")
                if names.partition != partition:
                    raise Malformed(f"a value of partition {names.partition} in {partition} at {offset}")
                found.add(partition, names.numbers[0], offset)
                if offset + 1 >= ends[partition]:
                    missing.discard(partition)
    finally:
        consumer.close()
    return found
