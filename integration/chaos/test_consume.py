"""The run, small: a group goes on by itself whatever befalls its broker, on the embedded broker and on real Kafka."""

from __future__ import annotations

import pytest

from integration.chaos.consume import PARTITIONS, run
from integration.chaos.group import PROTOCOLS, open_group
from integration.conftest import BrokerUnderTest

SEED = 4


@pytest.mark.timeout(240)
@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
async def test_a_group_goes_on_after_each_outage(protocol: str, modern_broker: BrokerUnderTest) -> None:
    seconds = 8.0 if modern_broker.name == "embedded" else 3.0
    told: list[str] = []
    outcome = await run(
        modern_broker.may_be_killed,
        seconds=seconds,
        protocol=protocol,
        longest=2.0,
        rate=20.0,
        seed=SEED,
        tell=told.append,
    )
    assert outcome.wrong == [], told
    assert len(told) == len(outcome.resumptions) > 0


@pytest.mark.timeout(120)
@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
async def test_what_is_kept_for_a_killed_member_is_known(protocol: str, modern_broker: BrokerUnderTest) -> None:
    servers = modern_broker.bootstrap_servers
    async with open_group(servers, partitions=PARTITIONS, size=2, rate=20.0, apart=True) as group:
        for name in group.names:
            await group.start(name, PROTOCOLS[protocol])
        await group.settled(PARTITIONS)
        assert not await group.held_by_the_dead()
        owned = await group.kill(group.names[0])
        assert len(owned) == PARTITIONS // 2
        assert await group.held_by_the_dead() == owned
