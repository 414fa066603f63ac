"""Small runs: a group recovers from each outage of its broker."""

from __future__ import annotations

import pytest

from integration.chaos.consume import PARTITIONS, run
from integration.chaos.group import PROTOCOLS, open_group
from integration.conftest import BrokerUnderTest

SEED = 4


@pytest.mark.timeout(240)
@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
async def test_a_group_resumes_after_each_outage(protocol: str, modern_broker: BrokerUnderTest) -> None:
    seconds = 8.0 if modern_broker.name == "embedded" else 3.0
    messages: list[str] = []
    outcome = await run(
        modern_broker.may_be_killed,
        seconds=seconds,
        protocol=protocol,
        longest=2.0,
        rate=20.0,
        seed=SEED,
        report=messages.append,
    )
    assert outcome.wrong == [], messages
    assert len(messages) == len(outcome.resumptions) > 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
async def test_partitions_assigned_to_a_killed_member_are_known(protocol: str, modern_broker: BrokerUnderTest) -> None:
    servers = modern_broker.bootstrap_servers
    async with open_group(servers, partitions=PARTITIONS, size=2, rate=20.0, apart=True) as group:
        for name in group.names:
            await group.start(name, PROTOCOLS[protocol])
        await group.settled(PARTITIONS)
        assert not await group.assigned_to_killed()
        owned = await group.kill(group.names[0])
        assert len(owned) == PARTITIONS // 2
        assert await group.assigned_to_killed() == owned
