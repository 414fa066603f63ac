"""Groups of the consumer protocol settle within moments, not within intervals of heartbeats."""

from __future__ import annotations

import random

import anyio

from aiokwire.protocol import ApiKey
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import until

INTERVAL = 5.0  # seconds: what the coordinator asks for


def test_two_that_start_at_once_share_long_before_their_second_heartbeat() -> None:
    async def main(world: World) -> None:
        async with (
            world.consumer(group_id="g", group_protocol="consumer") as one,
            world.consumer(group_id="g", group_protocol="consumer", rng=random.Random(3)) as two,
        ):
            await until(
                lambda: len(one.assignment) == len(two.assignment) == 1, within=INTERVAL / 2, what="a partition each"
            )

    simulate(main)


def test_news_in_an_answer_that_is_lost_are_asked_for_again() -> None:
    """The coordinator tells a member its partitions once, and then only who says everything again. What the heartbeats'
    thread repeats by itself, while the member still looks for its coordinator, does not."""

    async def main(world: World) -> None:
        broker = world.host.broker
        async with world.consumer(group_id="g", group_protocol="consumer", client_id="one") as one:
            await until(lambda: len(one.assignment) == 2, within=INTERVAL, what="both partitions")
            await anyio.sleep(4 * INTERVAL)
            async with world.consumer(group_id="g", group_protocol="consumer", rng=random.Random(3)) as two:
                await until(lambda: len(broker.faults.group("g").members) == 2, within=INTERVAL, what="a second member")
                find = broker.faults.on(ApiKey.FIND_COORDINATOR, client_id="one", times=None).hold()
                beats = broker.faults.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, client_id="one", times=None).observe()
                broker.faults.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, client_id="one").close_after()
                await until(lambda: len(beats.requests) >= 2, within=3 * INTERVAL, what="the same heartbeat again")
                assert beats.requests[1].subscribed_topic_names is None, "not everything"
                find.release()
                await until(
                    lambda: len(one.assignment) == len(two.assignment) == 1,
                    within=3 * INTERVAL,
                    what="a partition each",
                )

    simulate(main)


def test_a_group_at_rest_beats_once_in_an_interval() -> None:
    async def main(world: World) -> None:
        async with world.consumer(group_id="g", group_protocol="consumer") as reader:
            await until(lambda: len(reader.assignment) == 2, within=INTERVAL, what="both partitions")
            await anyio.sleep(2 * INTERVAL)
            beats = world.host.broker.faults.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, times=None).observe()
            await anyio.sleep(10 * INTERVAL)
            assert 9 <= len(beats.requests) <= 11

    simulate(main)
