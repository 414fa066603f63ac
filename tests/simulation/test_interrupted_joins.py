"""A member in JoinGroup or SyncGroup stops waiting when another response makes the wait useless."""

from __future__ import annotations

import anyio
import pytest

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import FencedError, KafkaError
from aiokwire.protocol import ApiKey
from aiokwire.types import OffsetAndMetadata, TopicPartition
from tests.simulation.test_scenarios import World, simulate
from tests.simulation.world import TOPIC, until

SOON = 5.0  # seconds: an eager heartbeat, and a join; the wait itself has a timeout of minutes


def test_a_sync_is_abandoned_when_a_heartbeat_reports_an_unknown_member() -> None:
    async def main(world: World) -> None:
        broker = world.host.broker
        sync = broker.faults.on(ApiKey.SYNC_GROUP).hold()
        async with world.consumer(group_id="g", session_timeout_ms=60_000) as reader:
            await sync.arrived(timeout=5)
            (member,) = broker.faults.group("g").members
            broker.faults.evict("g", member)
            await until(lambda: len(reader.assignment) == 2, within=SOON, what="a new generation")
            assert member not in broker.faults.group("g").members

    simulate(main)


def test_a_sync_is_abandoned_when_a_heartbeat_reports_a_fenced_member() -> None:
    async def main(world: World) -> None:
        broker = world.host.broker
        sync = broker.faults.on(ApiKey.SYNC_GROUP).hold()
        broker.faults.on(ApiKey.HEARTBEAT).error(ErrorCode.FENCED_INSTANCE_ID)
        async with world.consumer(group_id="g", group_instance_id="one") as reader:
            await sync.arrived(timeout=5)
            with pytest.raises(FencedError):
                await reader.getone(timeout=SOON)
            await until(lambda: (group := reader.health().group) and group.state == "FAILED", within=1, what="the end")

    simulate(main)


def test_a_sync_is_abandoned_when_max_poll_interval_expires() -> None:
    async def main(world: World) -> None:
        broker = world.host.broker
        async with world.consumer(group_id="g", max_poll_interval_ms=20_000) as reader:
            await until(lambda: len(reader.assignment) == 2, within=SOON, what="a generation")
            sync = broker.faults.on(ApiKey.SYNC_GROUP).hold()
            broker.faults.rebalance("g")
            await sync.arrived(timeout=5)
            await broker.faults.on(ApiKey.LEAVE_GROUP).observe().hit(timeout=20 + SOON)
            assert await reader.getmany(timeout=SOON) == []
            assert len(reader.assignment) == 2, "reading makes it join again"

    simulate(main)


def test_a_join_is_abandoned_when_a_commit_reports_an_unknown_member() -> None:
    async def main(world: World) -> None:
        broker = world.host.broker
        place = {TopicPartition(TOPIC, 0): OffsetAndMetadata(0)}
        async with world.consumer(group_id="g", session_timeout_ms=6_000) as reader, anyio.create_task_group() as tasks:
            await until(lambda: len(reader.assignment) == 2, within=SOON, what="a generation")
            commit = broker.faults.on(ApiKey.OFFSET_COMMIT).hold()

            async def commit_late() -> None:
                with pytest.raises(KafkaError):
                    await reader.commit(place)

            tasks.start_soon(commit_late)
            await commit.arrived(timeout=5)
            join = broker.faults.on(ApiKey.JOIN_GROUP).hold()
            broker.faults.rebalance("g")
            await join.arrived(timeout=SOON)  # a join waits for commits for half a session timeout, and is then sent
            (member,) = broker.faults.group("g").members
            broker.faults.evict("g", member)
            commit.release()
            await until(lambda: broker.faults.group("g").members, within=SOON, what="a new member")
            await until(lambda: len(reader.assignment) == 2, within=SOON, what="a new generation")
            join.release()
            await anyio.sleep(60)
            assert len(broker.faults.group("g").members) == 1, "the abandoned join left no member"

    simulate(main)
