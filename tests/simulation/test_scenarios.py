"""Scenarios on simulated time: long idle times, long outages, deadlines to the second."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from aiokwire.consumer import Consumer
from aiokwire.errors import DeliveryFailed, RequestTimedOut
from aiokwire.producer import Producer
from tests.simulation.loop import SimLoop, run
from tests.simulation.network import Network
from tests.simulation.world import BOOTSTRAP, BROKER_IP, TOPIC, BrokerHost, at_host

CLIENT_IP = "10.0.1.1"


class World:
    """A broker on a network, and its clients."""

    def __init__(self, loop: SimLoop, **configs: Any) -> None:
        self.loop = loop
        self.network = Network(loop)
        self.host = BrokerHost(loop, self.network, partitions=2, configs=configs)

    def producer(self, **options: Any) -> Producer[bytes, bytes]:
        return Producer(BOOTSTRAP, rng=random.Random(1), **options)

    def consumer(self, **options: Any) -> Consumer[bytes, bytes]:
        options.setdefault("rng", random.Random(2))
        return Consumer(TOPIC, bootstrap_servers=BOOTSTRAP, auto_offset_reset="earliest", **options)

    async def turns_per_second(self, seconds: float) -> float:
        """Return the turns of the loop per second."""
        before = self.loop.turns
        await anyio.sleep(seconds)
        return (self.loop.turns - before) / seconds


def simulate(main: Callable[[World], Awaitable[None]], seed: int = 1, **configs: Any) -> None:
    loop = SimLoop(seed)

    async def body() -> None:
        world = World(loop, **configs)
        await world.host.start()
        with at_host(CLIENT_IP):
            await main(world)
        if world.host.up:
            await world.host.stop()
        assert not loop.faults

    run(loop, body())


def test_idle_clients_hardly_wake_the_loop() -> None:
    async def main(world: World) -> None:
        async with world.producer() as producer, world.consumer() as consumer:
            await producer.send(TOPIC, b"a:0:")
            assert (await consumer.getone(timeout=5)).value == b"a:0:"
            assert await world.turns_per_second(600) < 40  # a long poll twice a second

    simulate(main)


@pytest.mark.parametrize("how", ["refused", "silent", "separated"])
def test_clients_of_a_dead_broker_do_not_spin_and_resume_when_it_is_back(how: str) -> None:
    async def main(world: World) -> None:
        async with world.producer(delivery_timeout_ms=1_000_000) as producer, world.consumer() as consumer:
            await producer.send(TOPIC, b"a:0:")
            if how == "separated":
                world.network.separate(CLIENT_IP, BROKER_IP)
            else:
                await world.host.die(power=how == "silent")
            deliveries = [producer.submit_nowait(TOPIC, b"a:%d:" % number) for number in range(1, 100)]
            assert await world.turns_per_second(300) < 60
            world.network.join()
            await world.host.revive()
            with anyio.fail_after(30):  # an attempt to connect in progress, then the longest backoff
                for delivery in deliveries:
                    await delivery
                seen: set[bytes | None] = set()
                while len(seen) < 100:
                    seen.update(record.value for record in await consumer.getmany(timeout=30))

    simulate(main, log_flush_interval_messages=1)  # acknowledged records survive the power failure


@pytest.mark.parametrize("silent", [False, True])
def test_an_undeliverable_record_fails_at_its_delivery_timeout(silent: bool) -> None:
    async def main(world: World) -> None:
        async with world.producer(delivery_timeout_ms=20_000, request_timeout_ms=5_000) as producer:
            await producer.send(TOPIC, b"a:0:")
            await world.host.die(power=silent)
            began = anyio.current_time()
            with pytest.raises(DeliveryFailed):
                await producer.send(TOPIC, b"a:1:")
            assert 20 <= anyio.current_time() - began < 20.1
            assert "0 of" in repr(producer)

    simulate(main)


@pytest.mark.parametrize("silent", [False, True])
def test_flush_and_close_meet_their_deadlines_without_a_broker(silent: bool) -> None:
    async def main(world: World) -> None:
        producer = world.producer()
        await producer.start()
        await producer.send(TOPIC, b"a:0:")
        await world.host.die(power=silent)
        producer.submit_nowait(TOPIC, b"a:1:")
        began = anyio.current_time()
        with pytest.raises(RequestTimedOut):
            await producer.flush(timeout=3)
        assert anyio.current_time() - began == pytest.approx(3, abs=0.01)
        left = await producer.close(timeout=2)
        assert [record.value for record in left] == [b"a:1:"]
        assert anyio.current_time() - began <= 3 + 2 + 1.1

    simulate(main)


def test_a_consumer_of_a_dead_broker_closes_in_time() -> None:
    async def main(world: World) -> None:
        consumer = world.consumer()
        await consumer.start()
        await world.host.die(power=True)
        began = anyio.current_time()
        assert await consumer.getmany(timeout=7) == []
        assert anyio.current_time() - began == pytest.approx(7, abs=0.01)
        await consumer.close(timeout=2)
        assert anyio.current_time() - began <= 7 + 2 + 0.1

    simulate(main)


def test_records_that_replace_unflushed_ones_after_a_power_failure_are_not_skipped() -> None:
    """Of three records that a consumer read, one was flushed; others take the lost offsets."""

    async def main(world: World) -> None:
        async with world.producer(enable_idempotence=False, acks=1) as producer, world.consumer() as consumer:
            await producer.send(TOPIC, b"kept", partition=0)
            await anyio.sleep(1)
            for file in world.host.storage.files.values():
                file.synced = len(file.data)
            for _ in range(2):
                await producer.send(TOPIC, b"lost", partition=0)
            seen = [(await consumer.getone(timeout=5)).value for _ in range(3)]
            assert seen == [b"kept", b"lost", b"lost"]
            for file in world.host.storage.files.values():
                del file.data[file.synced :]
            await world.host.die(power=True)
            await world.host.revive()
            for number in range(4):
                await producer.send(TOPIC, b"new %d" % number, partition=0)
            more = [(await consumer.getone(timeout=60)).value for _ in range(4)]
            assert more == [b"new 0", b"new 1", b"new 2", b"new 3"]

    simulate(main)
