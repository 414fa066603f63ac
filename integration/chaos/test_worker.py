"""Small runs: worker processes handle each record through restarts, kills and outages."""

from __future__ import annotations

import pytest

from integration.chaos.worker import Plan, run
from integration.conftest import BrokerUnderTest


@pytest.mark.timeout(300)
@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once", "at-most-once"])
async def test_worker_processes_handle_each_record_in_key_order(delivery: str, modern_broker: BrokerUnderTest) -> None:
    plan = Plan(
        records=30_000,
        keys=500,
        delivery=delivery,
        protocol="consumer" if delivery == "exactly-once" else "classic",
        restarts=1,
        kills=1,
        broker_faults=1,
    )
    outcome = await run(modern_broker.may_be_killed, plan)
    assert outcome.wrong == []
    assert outcome.dead_letters > 0
