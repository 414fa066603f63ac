"""Random histories of a group on simulated time: members come, go, are cut off and stall; the broker dies, too.

Judged: every record is worked on; in one generation no partition has two readers; no commit goes backwards.
"""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from typing import Any

import anyio
import pytest

from aiokwire.consumer import Consumer
from aiokwire.errors import KafkaError
from aiokwire.producer import Producer
from aiokwire.types import TopicPartition
from tests.simulation.loop import SimLoop, run
from tests.simulation.network import Network
from tests.simulation.world import BOOTSTRAP, BROKER_IP, TOPIC, BrokerHost, at_host

PARTITIONS = 4
RECORDS = 80
ALL = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
OPTIONS: dict[str, Any] = {
    "bootstrap_servers": BOOTSTRAP,
    "group_id": "g",
    "auto_offset_reset": "earliest",
    "session_timeout_ms": 6000,
    "heartbeat_interval_ms": 1000,
    "max_poll_interval_ms": 15_000,
}


class History:
    """What happened."""

    def __init__(self, seed: int, strategy: str) -> None:
        self.rng = random.Random(f"group {seed}")
        self.strategy = strategy
        self.loop = SimLoop(seed)
        self.network = Network(self.loop)
        # what is acknowledged survives the kills: this is about groups
        self.host = BrokerHost(
            self.loop, self.network, partitions=PARTITIONS, configs={"log_flush_interval_messages": 1}
        )
        self.done: set[bytes] = set()
        self.readers: dict[tuple[int, TopicPartition], set[str]] = defaultdict(set)  # by generation
        self.committed: dict[TopicPartition, int] = {}
        self.over = anyio.Event()
        self._names = iter(range(1, 1000))

    async def produce(self) -> None:
        async with Producer(BOOTSTRAP, rng=random.Random(1), delivery_timeout_ms=1_000_000) as producer:
            for number in range(RECORDS):
                await producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS)
                await anyio.sleep(self.rng.uniform(0, 2.0))

    async def member(self, life: float) -> None:
        """One member, for so many seconds."""
        number = next(self._names)
        rng = random.Random(f"{self.loop.seed} {number}")
        ip = f"10.0.2.{number}"
        static = {"group_instance_id": f"i{number}"} if rng.random() < 0.2 else {}
        with at_host(ip):
            reader: Consumer[bytes, bytes] = Consumer(
                TOPIC,
                rng=rng,
                enable_auto_commit=False,
                partition_assignment_strategy=self.strategy,
                **OPTIONS,
                **static,
            )
            until = anyio.current_time() + life
            while True:  # the broker may be down
                try:
                    await reader.start()
                    break
                except KafkaError:
                    await anyio.sleep(1.0)
                    reader = Consumer(
                        TOPIC, rng=rng, enable_auto_commit=False, partition_assignment_strategy=self.strategy, **OPTIONS
                    )
            async with reader:
                while anyio.current_time() < until and not self.over.is_set():
                    await self._work(reader, str(number), rng)
                    if rng.random() < 0.02:
                        self.loop.note(f"member {number} is cut off")
                        self.network.separate(ip, BROKER_IP)
                        await anyio.sleep(rng.uniform(1, 12))
                        self.network.join()

    async def _work(self, reader: Consumer[bytes, bytes], name: str, rng: random.Random) -> None:
        records = await reader.getmany(20, timeout=1.0)
        generation = reader.group_metadata().generation
        for record in records:
            if generation >= 0:
                self.readers[generation, TopicPartition(record.topic, record.partition)].add(name)
        await anyio.sleep(rng.choice([0, 0, 0.01, 0.3, 20.0 if rng.random() < 0.05 else 0.1]))
        self.done.update(record.value or b"" for record in records)
        if len(self.done) == RECORDS:
            self.over.set()
        with contextlib.suppress(KafkaError):  # then they come again, here or elsewhere
            await reader.commit(timeout=5)

    async def trouble(self) -> None:
        """Kill the broker now and then."""
        while True:
            await anyio.sleep(self.rng.uniform(10, 40))
            await self.host.die(power=False)
            await anyio.sleep(self.rng.uniform(0.5, 8))
            await self.host.revive()

    async def watch(self) -> None:
        """A bystander that looks at what the group committed."""
        with at_host("10.0.3.1"):
            while True:
                try:
                    async with Consumer(partitions=ALL, rng=random.Random(3), **OPTIONS) as tool:
                        while True:
                            await anyio.sleep(0.5)
                            for tp, place in (await tool.committed(timeout=5)).items():
                                now = 0 if place is None else place.offset
                                assert now >= self.committed.get(tp, 0), f"the commit of {tp} went back to {now}"
                                self.committed[tp] = now
                except KafkaError:
                    await anyio.sleep(1.0)

    async def play(self) -> None:
        await self.host.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.watch)
            tasks.start_soon(self.trouble)
            async with anyio.create_task_group() as members:
                members.start_soon(self.produce)
                members.start_soon(self.member, 10_000.0)  # one that stays
                with anyio.fail_after(3000):
                    while not self.over.is_set():
                        members.start_soon(self.member, self.rng.uniform(5, 60))
                        with anyio.move_on_after(self.rng.uniform(2, 30)):
                            await self.over.wait()
            tasks.cancel_scope.cancel()
        self.network.join()
        if not self.host.up:
            await self.host.revive()
        await self.host.stop()


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
@pytest.mark.parametrize("seed", range(2))
def test_a_group_works_everything_off_whatever_befalls_it(seed: int, strategy: str) -> None:
    history = History(seed, strategy)
    run(history.loop, history.play())
    assert not history.loop.faults
    assert history.done == {b"%d" % number for number in range(RECORDS)}
    doubled = {place: readers for place, readers in history.readers.items() if len(readers) > 1}
    assert not doubled, "one owner of each partition in each generation"
