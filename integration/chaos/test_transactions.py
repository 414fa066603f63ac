"""Small runs on the embedded broker and on Kafka: each input counts once, whatever is killed."""

from __future__ import annotations

import pytest

from integration.chaos.transactions import KILL_BROKER, KILL_WORKER, OVERTAKE, Plan, run
from integration.conftest import BrokerUnderTest

SEED = 3


@pytest.mark.timeout(180)
async def test_each_input_counts_once_while_worker_and_broker_are_killed(modern_broker: BrokerUnderTest) -> None:
    plan = Plan(transactions=200, worker_kills=2, overtakes=1, broker_kills=1, seed=SEED)
    outcome = await run(modern_broker.may_be_killed, plan)
    counts = outcome.counts
    assert (counts[KILL_WORKER], counts[OVERTAKE], counts[KILL_BROKER]) == (2, 1, 1), outcome
    assert counts["aborted"] > 0
    assert counts["committed"] > 100
