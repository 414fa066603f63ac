"""The rolling restart, small: nothing lost or doubled, and static members cause no rebalance.

How long partitions stop is for a machine that does nothing else: `python -m integration.chaos.rolling` measures it.
"""

from __future__ import annotations

from typing import Any

import pytest

from integration.chaos import group
from integration.chaos.group import PROTOCOLS
from integration.chaos.rolling import NO_REBALANCE, main, roll
from integration.conftest import BrokerUnderTest

SMALL: dict[str, Any] = {"restarts": 1, "calm": 0.1, "rate": 20.0, "stop_allowed": 30.0}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_rolling_restart_loses_and_doubles_nothing(protocol: str, modern_broker: BrokerUnderTest) -> None:
    outcome = await roll(modern_broker.bootstrap_servers, protocol, **SMALL)
    assert outcome.wrong == []
    assert outcome.records > 0
    assert (outcome.rebalances == 0) is (protocol in NO_REBALANCE[False])


@pytest.mark.timeout(180)
async def test_a_static_member_that_is_killed_goes_on_where_it_had_committed(modern_broker: BrokerUnderTest) -> None:
    outcome = await roll(modern_broker.bootstrap_servers, "static", killed=True, **SMALL)
    assert outcome.wrong == []
    assert outcome.rebalances == 0
    assert 0 < outcome.doubled <= outcome.uncommitted


def test_a_group_that_does_not_settle_is_told_in_one_line_and_by_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(group, "_PATIENCE", 0.0)
    monkeypatch.setattr("sys.argv", ["rolling", "--protocols", "static"])
    assert main() == 1
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("FAILED: static: an even share of every partition: not within 0.0 s; owned: {")
