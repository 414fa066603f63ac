"""One memory budget for all brokers: a waiting fetch gets memory, however busy the others are."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.consumer import Consumer
from aiokwire.producer import Producer
from aiokwire.types import TopicPartition

BUSY = [TopicPartition("t", number) for number in range(0, 16, 2)]  # all led by the first node
LATE = TopicPartition("t", 1)  # by the second
VALUE = bytes(2000)


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"nodes": 2, "topics": {"t": 16}, "auto_create_topics": False}


async def test_a_partition_that_waits_for_room_gets_it_while_those_of_another_broker_are_read(
    kafka_broker: Broker, quick: dict[str, Any]
) -> None:
    assert {kafka_broker.faults.leader(*tp) for tp in BUSY} == {1}
    assert kafka_broker.faults.leader(*LATE) == 2
    async with Producer(kafka_broker.bootstrap_servers, batch_size=4100) as producer:
        for tp in BUSY:
            for _ in range(150):
                await producer.submit("t", VALUE, partition=tp.partition)
        await producer.send("t", b"late", partition=LATE.partition)
        await producer.flush()
    async with Consumer(
        partitions=[*BUSY, LATE],
        bootstrap_servers=kafka_broker.bootstrap_servers,
        auto_offset_reset="earliest",
        fetch_memory=100_000,
        max_partition_fetch_bytes=50_000,
        **quick,
    ) as reader:
        reader.pause(LATE)
        with anyio.fail_after(10):
            while reader.memory_in_use < 90_000:
                await anyio.lowlevel.checkpoint()
            reader.resume(LATE)
            read = 0
            async for record in reader:
                read += 1
                if record.partition == LATE.partition:
                    break
    assert read < 200, "of 1,200 that the busy broker has"
