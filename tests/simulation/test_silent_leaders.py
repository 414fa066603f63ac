"""A leader hangs (its connections stay open, it sends nothing) and its partitions get another."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from aiokwire.broker.faults.rules import Hold
from aiokwire.consumer import Consumer
from aiokwire.protocol import ApiKey
from aiokwire.types import TopicPartition
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import TOPIC

NOTICED_AFTER = 9.0  # seconds until a cluster elects other leaders for a silent node's partitions
SOON = 3.0  # seconds: an overdue response, and the requests to the new leader

ASKED = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.PRODUCE, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH)


def lead(world: World, node: int, *partitions: int) -> None:
    for partition in partitions:
        world.host.broker.faults.move_leader(TOPIC, partition, node)


def silence(world: World, node: int) -> Hold:
    """Stop all responses of a node, and hold those to Fetch, which may be released later."""
    for api in ASKED:
        world.host.broker.faults.on(api, node=node, times=None).drop()
    return world.host.broker.faults.on(ApiKey.FETCH, node=node, times=None).hold()


async def values(reader: Consumer[Any, Any], count: int, within: float) -> list[bytes]:
    seen: list[bytes] = []
    with anyio.fail_after(within):
        while len(seen) < count:
            seen += [record.value or b"" for record in await reader.getmany()]
    return sorted(seen)


@pytest.mark.parametrize("late", [False, True], ids=["never responds", "responds late"])
def test_partitions_of_a_silent_leader_are_read_from_the_new_leader_within_seconds(late: bool) -> None:
    async def main(world: World) -> None:
        alive, silent = world.host.broker.nodes
        lead(world, silent, 0, 1)
        async with world.producer() as producer, world.consumer() as reader:
            for partition in (0, 1):
                await producer.send(TOPIC, b"before %d" % partition, partition=partition)
            assert await values(reader, 2, within=5) == [b"before 0", b"before 1"]
            fetch = silence(world, silent)
            await fetch.arrived(timeout=5)
            await anyio.sleep(NOTICED_AFTER)
            lead(world, alive, 0, 1)
            async with world.producer() as another:
                for partition in (0, 1):
                    await another.send(TOPIC, b"after %d" % partition, partition=partition)
            if late:
                fetch.release()
            assert await values(reader, 2, within=SOON) == [b"after 0", b"after 1"]
            await anyio.sleep(60)
            assert await reader.getmany(timeout=1) == [], "no record is returned twice"

    simulate(main, nodes=2)


def test_memory_reserved_for_a_silent_leader_is_freed_when_it_leads_no_partition() -> None:
    async def main(world: World) -> None:
        alive, silent = world.host.broker.nodes
        lead(world, silent, 0, 1)
        async with world.producer() as producer, world.consumer(fetch_memory=200_000) as reader:
            await producer.send(TOPIC, b"before", partition=0)
            assert await values(reader, 1, within=5) == [b"before"]
            await anyio.sleep(1)
            reader.seek(TopicPartition(TOPIC, 0), 0)  # while one lane waits, the other connects and fetches
            assert await values(reader, 1, within=5) == [b"before"]
            fetch = silence(world, silent)
            await fetch.arrived(timeout=5)
            reader.seek(TopicPartition(TOPIC, 0), 0)
            await fetch.arrived(2, timeout=5)
            assert reader.memory_in_use == 200_000
            lead(world, alive, 0, 1)
            assert await values(reader, 1, within=SOON) == [b"before"]
            await anyio.sleep(1)
            assert reader.memory_in_use <= 100_000, "the size of one fetch"

    simulate(main, nodes=2)


@pytest.mark.parametrize("api", [ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH])
def test_a_lookup_without_a_response_from_a_silent_leader_is_sent_to_the_new_leader(api: ApiKey) -> None:
    async def main(world: World) -> None:
        alive, silent = world.host.broker.nodes
        async with world.producer() as producer, world.consumer() as reader:
            await producer.send(TOPIC, b"before", partition=0)
            assert await values(reader, 1, within=5) == [b"before"]
            asked = world.host.broker.faults.on(api, node=silent, times=None).hold()
            lead(world, silent, 0)
            async with anyio.create_task_group() as tasks:
                if api is ApiKey.LIST_OFFSETS:
                    tasks.start_soon(reader.seek_to_beginning, TopicPartition(TOPIC, 0))
                await asked.arrived(timeout=5)
                silence(world, silent)
                lead(world, alive, 0)
            async with world.producer() as another:
                await another.send(TOPIC, b"after", partition=0)
            expected = [b"after", b"before"] if api is ApiKey.LIST_OFFSETS else [b"after"]
            assert await values(reader, len(expected), within=SOON) == expected

    simulate(main, nodes=2)
