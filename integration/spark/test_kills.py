"""Small runs of the exactly-once sink under kills, at the requests that have an effect."""

from __future__ import annotations

import os

import pytest

from aiokwire.protocol import ApiKey
from integration.kafka import MissingPrerequisite, java, libs
from integration.spark.account import NotExactlyOnce, check_copies, check_rows
from integration.spark.kills import SETTINGS, Setting, broker_behind_proxy, run
from integration.spark.places import ALL, Kill, places
from integration.spark.proxy import Moment

pytestmark = pytest.mark.timeout(180)

FIRST_ONLY = (ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN)
WITH_EFFECT = (ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS)


def some(setting: Setting) -> list[Kill]:
    """Return kills at requests that take effect after the sender's death.

    With transactions V1, those V2 lacks.
    """
    late = setting.transaction_v2 and setting.broker == "embedded"
    return [
        kill
        for kill in setting.kills()
        if kill.api in (WITH_EFFECT if setting.transaction_v2 else FIRST_ONLY)
        and kill.moment in ((Moment.AFTER, Moment.LATE) if late else (Moment.AFTER,))
        and kill.whom != ALL
        and kill.nth == 1
        and not kill.aborting
    ]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
async def test_each_row_is_stored_once(setting: Setting, request: pytest.FixtureRequest) -> None:
    name = setting.broker if setting.broker == "embedded" else f"kafka-{setting.broker}"
    if name not in request.config.getoption("--brokers").split(","):
        pytest.skip(f"not in --brokers: {name}")
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


def test_every_request_of_the_protocol_has_a_kill() -> None:
    for transaction_v2 in (True, False):
        found = places(transaction_v2=transaction_v2, markers=True)
        assert len({str(kill) for kill in found}) == len(found)
        apis = {kill.api for kill in found}
        assert apis >= {ApiKey.INIT_PRODUCER_ID, ApiKey.OFFSET_FETCH, ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT}
        assert apis >= {ApiKey.END_TXN, ApiKey.WRITE_TXN_MARKERS}
        assert apis.issuperset(FIRST_ONLY) is not transaction_v2
    assert sum(len(setting.kills()) for setting in SETTINGS) >= 200


def test_missing_duplicate_and_mixed_rows_are_found() -> None:
    size = {"batches": 1, "tasks": 1, "rows": 2}
    check_rows(["0 0 0 a", "0 0 1 a"], **size)
    for values, message in (
        (["0 0 0 a"], "row 1 .* is stored 0 times"),
        (["0 0 0 a", "0 0 1 a", "0 0 1 a"], "row 1 .* is stored 2 times"),
        (["0 0 0 a", "0 0 1 b"], "batch 0 has rows of 2 attempts"),
        (["0 0 0 a", "0 0 1 a", "7 0 1 a"], "1 rows that no task wrote"),
    ):
        with pytest.raises(NotExactlyOnce, match=message):
            check_rows(values, **size)


def test_missing_and_extra_copies_are_found() -> None:
    check_copies(["b", "a"], ["a", "b"])
    with pytest.raises(NotExactlyOnce, match=r"1 rows are missing \['b'\], 2 too many \['a', 'x'\]"):
        check_copies(["a", "a", "x"], ["a", "b"])
