"""Groups of the consumer protocol settle at once, not after several heartbeat intervals."""

from __future__ import annotations

import random

import anyio

from aiokwire.protocol import ApiKey
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import until

INTERVAL = 5.0  # seconds, as set by the coordinator


def test_two_members_that_start_together_share_partitions_before_their_second_regular_heartbeat() -> None:
    async def main(world: World) -> None:
        async with (
            world.consumer(group_id="g", group_protocol="consumer") as one,
            world.consumer(group_id="g", group_protocol="consumer", rng=random.Random(3)) as two,
        ):
            await until(
                lambda: len(one.assignment) == len(two.assignment) == 1, within=INTERVAL / 2, what="a partition each"
            )

    simulate(main)


def test_an_assignment_in_a_lost_response_is_requested_again() -> None:
    """The coordinator sends an assignment once, and again only in response to a full heartbeat.

    The heartbeats that the thread repeats while the member looks for its coordinator are not full.
    """

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
                assert beats.requests[1].subscribed_topic_names is None, "not a full heartbeat"
                find.release()
                await until(
                    lambda: len(one.assignment) == len(two.assignment) == 1,
                    within=3 * INTERVAL,
                    what="a partition each",
                )

    simulate(main)


def test_a_member_of_a_stable_group_sends_one_heartbeat_per_interval() -> None:
    async def main(world: World) -> None:
        async with world.consumer(group_id="g", group_protocol="consumer") as reader:
            await until(lambda: len(reader.assignment) == 2, within=INTERVAL, what="both partitions")
            await anyio.sleep(2 * INTERVAL)
            beats = world.host.broker.faults.on(ApiKey.CONSUMER_GROUP_HEARTBEAT, times=None).observe()
            await anyio.sleep(10 * INTERVAL)
            assert 9 <= len(beats.requests) <= 11

    simulate(main)
