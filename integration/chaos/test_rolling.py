"""The rolling restart, small: nothing lost or doubled, and static members cause no rebalance.

How long partitions stop is for a machine that does nothing else: `python -m integration.chaos.rolling` measures it.
"""

from __future__ import annotations

import pytest

from integration.chaos.group import PROTOCOLS
from integration.chaos.rolling import roll
from integration.conftest import BrokerUnderTest


@pytest.mark.timeout(180)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_rolling_restart_loses_and_doubles_nothing(protocol: str, modern_broker: BrokerUnderTest) -> None:
    outcome = await roll(modern_broker.bootstrap_servers, protocol, restarts=2, calm=0.5, rate=20.0, stop_allowed=30.0)
    assert outcome.wrong == []
    assert outcome.records > 0
    assert (outcome.rebalances == 0) is (protocol == "static")
