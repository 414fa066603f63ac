"""Random histories of groups. `python -m tests.simulation.explore --groups` plays thousands."""

from __future__ import annotations

import dataclasses
import re

import anyio
import pytest

from aiokwire.admin import Admin
from tests.simulation.groups import Plan, draw, draw_mixed, play
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import BOOTSTRAP, TOPIC, until

SEEDS = [3, 34, 47, 1009, 3033, *range(200, 204)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_of_a_group_keeps_every_guarantee(seed: int) -> None:
    outcome = play(seed)
    assert not outcome.wrong, f"seed {seed}: {outcome.wrong}"


@pytest.mark.parametrize("seed", [4, 8, 12, 28, 34, 1, 3])
def test_no_partition_has_two_owners_while_members_of_other_clients_switch_the_assignor(seed: int) -> None:
    """Regression: even seeds failed when the leader assigned partitions still owned by others."""
    outcome = play(seed, draw_mixed)
    assert not outcome.wrong, f"seed {seed}: {outcome.wrong}"


@pytest.mark.parametrize("protocol", ["classic", "consumer", "auto"])
def test_each_protocol_keeps_its_guarantees_in_the_same_history(protocol: str) -> None:
    def plan(seed: int) -> Plan:
        return dataclasses.replace(draw(seed), protocol=protocol, strategy="cooperative-sticky", automatic=False)

    outcome = play(157, plan)
    assert not outcome.wrong, outcome.wrong


def test_the_same_seed_gives_the_same_history() -> None:
    assert play(7).trace_hash == play(7).trace_hash != play(8).trace_hash


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_idle_member_hardly_wakes_the_loop_and_survives_a_long_outage(protocol: str) -> None:
    async def main(world: World) -> None:
        async with world.consumer(group_id="g", group_protocol=protocol) as consumer:
            assert await consumer.getmany(timeout=5) == []
            assert len(consumer.assignment) == 2
            assert await world.turns_per_second(600) < 40
            await world.host.die(power=False)
            assert await world.turns_per_second(600) < 60
            await world.host.revive()
            async with world.producer() as producer:
                await producer.send(TOPIC, b"a:0:")
            assert (await consumer.getone(timeout=10)).value == b"a:0:"

    simulate(main)


@pytest.mark.parametrize("protocol", ["classic", "consumer", None])
def test_a_consumer_that_waits_for_records_through_an_outage_hardly_wakes_the_loop(protocol: str | None) -> None:
    """Fetch lanes, lookups and heartbeats share their attempts to reach the dead broker."""
    options = {} if protocol is None else {"group_id": "g", "group_protocol": protocol}

    async def main(world: World) -> None:
        async with world.consumer(**options) as consumer, anyio.create_task_group() as tasks:
            assert await consumer.getmany(timeout=5) == []

            async def read() -> None:
                assert (await consumer.getone()).value == b"a:0:"

            tasks.start_soon(read)
            await world.host.die(power=False)
            assert await world.turns_per_second(600) < 25
            await world.host.revive()
            with anyio.fail_after(10):
                async with world.producer() as producer:
                    await producer.send(TOPIC, b"a:0:")

    simulate(main)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_new_partitions_and_topics_are_assigned_within_seconds_despite_a_long_metadata_max_age(protocol: str) -> None:
    configs = {"group_consumer_heartbeat_interval_ms": 500, "group_consumer_min_heartbeat_interval_ms": 500}

    async def main(world: World) -> None:
        async with world.consumer(group_id="g", group_protocol=protocol) as consumer, Admin(BOOTSTRAP) as admin:
            await consumer.getmany(timeout=5)
            await admin.create_partitions({TOPIC: 4})
            await until(lambda: len(consumer.assignment) == 4, within=4, what="new partitions")
            await consumer.subscribe(re.compile(f"{TOPIC}|new"))
            await anyio.sleep(1)
            await admin.create_topic("new", 2)
            await until(lambda: len(consumer.assignment) == 6, within=4, what="a new topic")

    simulate(main, **configs)
