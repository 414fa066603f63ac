"""The exactly-once sink under kills, small: each place of the protocol once."""

from __future__ import annotations

import random

import pytest

from aiokwire.broker import Broker
from integration.spark.job import Job
from integration.spark.kills import STEPS, Kill, NotExactlyOnce, judge, kills, one_kill

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("kill", kills(2 * len(STEPS)), ids=str)
async def test_each_row_is_there_once(kill: Kill) -> None:
    async with Broker() as broker:
        assert await one_kill(broker, kill, random.Random(1)) >= 2


def test_the_judge_finds_what_is_wrong() -> None:
    job = Job("", "t", "s", "", 1, 1, 2)
    judge(job, ["0 0 0 a", "0 0 1 a"])
    for values, said in (
        (["0 0 0 a"], "row 1 .* is there 0 times"),
        (["0 0 0 a", "0 0 1 a", "0 0 1 a"], "row 1 .* is there 2 times"),
        (["0 0 0 a", "0 0 1 b"], "batch 0 is torn"),
        (["0 0 0 a", "0 0 1 a", "7 0 1 a"], "1 rows that nobody wrote"),
    ):
        with pytest.raises(NotExactlyOnce, match=said):
            judge(job, values)
