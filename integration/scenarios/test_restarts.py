"""A broker is killed under load: no acknowledged record is lost, and every client continues."""

from __future__ import annotations

from typing import Any

import anyio
from anyio.to_thread import run_sync

from aiokwire import Producer, TopicPartition
from integration.conftest import PARTITIONS, BrokerUnderTest
from integration.scenarios.common import PATIENCE, consumer, partitions, take

BEFORE, AFTER = 3_000, 6_000  # acknowledged when the broker is killed, and at the end
RECOVERY = 60.0


async def test_no_acknowledged_record_is_lost_when_the_broker_is_killed_under_load(broker: BrokerUnderTest) -> None:
    server = broker.may_be_killed
    topic = broker.create("restart")
    acknowledged: dict[int, tuple[int, int]] = {}
    killed = anyio.Event()

    async def send(producer: Producer[Any, Any], first: int) -> None:
        number = first
        while len(acknowledged) < AFTER:
            meta = await producer.send(topic, b"%d" % number, partition=number % PARTITIONS)
            acknowledged[number] = (meta.partition, meta.offset)
            number += 20
            if len(acknowledged) >= BEFORE:
                killed.set()

    async def kill_and_restart() -> None:
        await killed.wait()
        await run_sync(server.kill)
        await run_sync(server.restart)

    with anyio.fail_after(RECOVERY):
        async with Producer(broker.bootstrap_servers) as producer, anyio.create_task_group() as group:
            group.start_soon(kill_and_restart)
            for first in range(20):
                group.start_soon(send, producer, first)
    async with consumer(broker, partitions(topic)) as reader:
        ends = await reader.end_offsets(partitions(topic), timeout=PATIENCE)
        records = await take(reader, sum(ends.values()))
    stored = {(record.partition, record.offset): int(record.value or b"") for record in records}
    wrong = {number: place for number, place in acknowledged.items() if stored.get(place) != number}
    assert wrong == {}


async def test_a_consumer_resumes_at_its_position_after_its_broker_restarts(broker: BrokerUnderTest) -> None:
    server = broker.may_be_killed
    place = TopicPartition(broker.create("restart"), 0)
    with anyio.fail_after(RECOVERY):
        async with Producer(broker.bootstrap_servers) as producer, consumer(broker, [place]) as reader:
            await producer.send(place.topic, b"before", partition=0)
            assert [record.value for record in await take(reader, 1)] == [b"before"]
            await run_sync(server.kill)
            await run_sync(server.restart)
            await producer.send(place.topic, b"after", partition=0)
            assert [record.value for record in await take(reader, 1)] == [b"after"]
