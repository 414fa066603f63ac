"""The exactly-once sink under kills, small: the steps that have an effect, on both brokers."""

from __future__ import annotations

import os

import pytest

from aiokwire.protocol import ApiKey
from integration.kafka import MissingPrerequisite, java, libs
from integration.spark.account import NotExactlyOnce, judge, judge_copies
from integration.spark.kills import SETTINGS, Setting, broker_behind_proxy, run
from integration.spark.places import ALL, Kill, places
from integration.spark.proxy import Moment

pytestmark = pytest.mark.timeout(180)

FIRST_ONLY = (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN)
WITH_EFFECT = (ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS)


def some(setting: Setting) -> list[Kill]:
    """Requests that have their effect though their sender is dead; of the first protocol what the second lacks."""
    late = setting.second and setting.broker == "embedded"
    return [
        kill
        for kill in setting.kills()
        if kill.api in (WITH_EFFECT if setting.second else FIRST_ONLY)
        and kill.moment in ((Moment.AFTER, Moment.LATE) if late else (Moment.AFTER,))
        and kill.whom != ALL
        and kill.nth == 1
        and not kill.aborting
    ]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
async def test_each_row_is_there_once(setting: Setting, request: pytest.FixtureRequest) -> None:
    name = setting.broker if setting.broker == "embedded" else f"kafka-{setting.broker}"
    if name not in request.config.getoption("--brokers").split(","):
        pytest.skip(f"not asked for: {name}")
    if setting.broker != "embedded":
        try:
            java()
            libs(setting.broker)
        except MissingPrerequisite as missing:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"missing: {missing}")
    kills = some(setting)
    async with broker_behind_proxy(setting) as proxy:
        outcome = await run(proxy, setting, kills)
    assert outcome.kills == kills
    assert outcome.starts > 1


def test_every_step_is_a_place() -> None:
    for second in (True, False):
        found = places(second=second, markers=True)
        assert len({str(kill) for kill in found}) == len(found)
        apis = {kill.api for kill in found}
        assert apis >= {ApiKey.INIT_PRODUCER_ID, ApiKey.OFFSET_FETCH, ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT}
        assert apis >= {ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS}
        assert apis.issuperset(FIRST_ONLY) is not second
    assert sum(len(setting.kills()) for setting in SETTINGS) >= 200


def test_the_judge_finds_what_is_wrong() -> None:
    size = {"batches": 1, "tasks": 1, "rows": 2}
    judge(["0 0 0 a", "0 0 1 a"], **size)
    for values, said in (
        (["0 0 0 a"], "row 1 .* is there 0 times"),
        (["0 0 0 a", "0 0 1 a", "0 0 1 a"], "row 1 .* is there 2 times"),
        (["0 0 0 a", "0 0 1 b"], "batch 0 is torn"),
        (["0 0 0 a", "0 0 1 a", "7 0 1 a"], "1 rows that nobody wrote"),
    ):
        with pytest.raises(NotExactlyOnce, match=said):
            judge(values, **size)


def test_the_judge_of_copies_finds_what_is_wrong() -> None:
    judge_copies(["b", "a"], ["a", "b"])
    with pytest.raises(NotExactlyOnce, match=r"1 rows are missing \['b'\], 2 too many \['a', 'x'\]"):
        judge_copies(["a", "a", "x"], ["a", "b"])
