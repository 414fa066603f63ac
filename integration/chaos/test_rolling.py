"""Small rolling restarts: no record is lost or duplicated, and static members cause no rebalance.

`python -m integration.chaos.rolling` measures how long partitions stop, on an idle machine.
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
async def test_a_rolling_restart_neither_loses_nor_duplicates_records(
    protocol: str, modern_broker: BrokerUnderTest
) -> None:
    outcome = await roll(modern_broker.bootstrap_servers, protocol, **SMALL)
    assert outcome.wrong == []
    assert outcome.records > 0
    assert (outcome.rebalances == 0) is (protocol in NO_REBALANCE[False])


@pytest.mark.timeout(180)
async def test_a_killed_static_member_resumes_at_its_committed_offsets(modern_broker: BrokerUnderTest) -> None:
    outcome = await roll(modern_broker.bootstrap_servers, "static", killed=True, **SMALL)
    assert outcome.wrong == []
    assert outcome.rebalances == 0
    assert 0 < outcome.duplicates <= outcome.uncommitted


def test_a_group_that_does_not_settle_is_reported_in_one_line_and_by_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(group, "_PATIENCE", 0.0)
    monkeypatch.setattr("sys.argv", ["rolling", "--protocols", "static"])
    assert main() == 1
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith("FAILED: static: an even share of every partition: not within 0.0 s; owned: {")
