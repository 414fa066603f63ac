"""Ledgers and their comparison: each kind of broken guarantee is detected."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from integration.chaos.faults import Kind, plan
from integration.chaos.ledger import FAILED, NOWHERE, Ledger, Run
from integration.chaos.records import SIZE, Malformed, read_names, value_of
from integration.chaos.verdict import judge


def ledger(*runs: tuple[int, int, int]) -> Ledger:
    """Return a ledger of one partition with these runs."""
    made = Ledger(1)
    for number, offset, count in runs:
        made.add(0, number, offset, count)
    return made


def test_acknowledged_records_that_are_stored_are_not_a_fault() -> None:
    verdict = judge(ledger((0, 0, 100), (100, FAILED, 20), (120, 110, 30)), ledger((0, 0, 110), (120, 110, 30)))
    assert verdict.faults == []
    assert (verdict.stored, verdict.acknowledged, verdict.failed, verdict.failed_but_stored) == (140, 130, 20, 10)


@pytest.mark.parametrize(
    ("stored", "fault"),
    [
        ([(0, 0, 99)], "1 of 100 record(s) acknowledged from number 0 are LOST"),
        ([(0, 0, 40), (41, 41, 59)], "1 of 100 record(s) acknowledged from number 0 are LOST"),
        ([(0, 0, 100), (90, 100, 10)], "10 of 100 record(s) from number 0 are stored twice"),
        ([(0, 0, 40), (60, 40, 40), (40, 80, 20)], "number 60 was acknowledged at offset 60, but is stored at 40"),
        ([(0, 0, 40), (60, 40, 40), (40, 80, 20)], "follow number 99: duplicates, or out of order"),
        ([(0, 1, 100)], "number 0 was acknowledged at offset 0, but is stored at 1"),
        ([(0, 0, 101)], "number 100 was never sent"),
        ([(0, 0, 50), (50, 49, 50)], "offset 49 was read after 49"),
    ],
)
def test_a_broken_guarantee_is_a_fault(stored: list[tuple[int, int, int]], fault: str) -> None:
    assert any(fault in found for found in judge(ledger((0, 0, 100)), ledger(*stored)).faults)


def test_a_failed_record_that_is_stored_twice_is_a_fault() -> None:
    (fault,) = judge(ledger((0, 0, 10), (10, FAILED, 5)), ledger((0, 0, 15), (10, 15, 5))).faults
    assert "from number 10 at offset 15 follow number 14" in fault


def test_an_acknowledgement_without_an_offset_holds_if_the_record_is_stored_once() -> None:
    account = ledger((0, 0, 10), (10, NOWHERE, 5))
    verdict = judge(account, ledger((0, 0, 15)))
    assert (verdict.faults, verdict.acknowledged, verdict.acknowledged_nowhere) == ([], 15, 5)
    assert judge(account, ledger((0, 0, 14))).faults


def test_records_are_kept_as_runs() -> None:
    made = Ledger(1)
    made.add_all(0, range(4), [0, 1, 2, 3])
    made.add_all(0, range(4, 10), [4, 5, FAILED, FAILED, 6, 7])
    made.add_all(0, range(10, 12), [8, 9])
    assert made.runs == [[Run(0, 0, 6), Run(6, FAILED, 2), Run(8, 6, 4)]]


def test_numbers_with_a_gap_and_a_repetition_are_not_one_run() -> None:
    made = Ledger(1)
    made.add_all(0, [0, 2, 2, 3], [0, 1, 2, 3])
    assert made.runs == [[Run(0, 0, 1), Run(2, 1, 1), Run(2, 2, 2)]]


def test_values_name_their_records() -> None:
    values = b"".join(value_of(5, number) for number in (7, 8, 11))
    assert len(values) == 3 * SIZE
    assert read_names(values) == (5, [7, 8, 11])


@pytest.mark.parametrize(
    "values", [value_of(1, 1)[:-8], value_of(1, 1)[:-1] + b"\x7f", value_of(1, 1) + value_of(2, 1)]
)
def test_a_value_of_another_format_is_refused(values: bytes) -> None:
    with pytest.raises(Malformed):
        read_names(values)


@pytest.mark.parametrize("seed", range(20))
def test_a_plan_spreads_its_faults_and_is_determined_by_its_seed(seed: int) -> None:
    kinds = [Kind.KILL] * 5 + [Kind.STOP, Kind.FREEZE]
    faults = plan(random.Random(seed), 7_000, kinds)
    assert faults == plan(random.Random(seed), 7_000, kinds)
    assert sorted(fault.kind.name for fault in faults) == sorted(kind.name for kind in kinds)
    places = [0, *(fault.at for fault in faults), 7_000]
    assert all(b - a >= 300 for a, b in pairwise(places))
