"""The demo's check fails for every lost or reordered flight, and counts duplicates."""

from __future__ import annotations

import json

import pytest

from aiokwire.cli.demo.flights import Flights
from aiokwire.cli.demo.pipeline import Outcome, account
from aiokwire.cli.demo.report import check


def _flight(number: int, tail: str | None = "N1") -> dict[str, object]:
    return {"id": number, "tailnum": tail, "carrier": "UA", "arr_delay": 20 if number else None}


def _outcome(arrivals: list[int], *, acknowledged: int = 3, tails: dict[int, str | None] | None = None) -> Outcome:
    outcome = Outcome(Flights([b"N1"] * 3, [json.dumps(_flight(n)).encode() for n in range(3)], {"UA": "United"}))
    outcome.acknowledged = set(range(acknowledged))
    outcome.complete = True
    last: dict[str, int] = {}
    for number in arrivals:
        account(outcome, _flight(number, (tails or {}).get(number, "N1")), last)
    return outcome


def test_all_flights_in_order_pass() -> None:
    outcome = _outcome([0, 1, 2])
    assert check(outcome)
    airline = outcome.delays["UA"]
    assert (airline.flights, airline.cancelled, airline.delayed, airline.minutes) == (3, 1, 2, 40)


def test_a_duplicate_is_counted_and_adds_no_delay() -> None:
    outcome = _outcome([0, 1, 1, 2])
    assert check(outcome)
    assert (outcome.duplicates, outcome.delays["UA"].flights) == (1, 3)


@pytest.mark.parametrize(
    ("arrivals", "acknowledged", "line"),
    [
        ([0, 1], 3, "FAIL nothing acknowledged lost (1 lost)"),
        ([0, 1], 2, "FAIL every flight arrived (2 of 3)"),
        ([0, 1, 2], 2, "FAIL every flight acknowledged (2 of 3)"),
        ([0, 2, 1], 3, "FAIL in order for each aircraft (N1: flight 1 after 2)"),
    ],
)
def test_the_check_fails_and_names_the_fault(
    arrivals: list[int], acknowledged: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not check(_outcome(arrivals, acknowledged=acknowledged))
    printed = capsys.readouterr().out
    assert line in printed
    assert "check FAILED" in printed


def test_a_demo_that_ran_out_of_time_fails() -> None:
    outcome = _outcome([0, 1, 2])
    outcome.complete = False
    assert not check(outcome)


def test_order_is_checked_within_each_aircraft_not_across_them() -> None:
    assert check(_outcome([0, 2, 1], tails={2: "N2"}))
    assert check(_outcome([0, 2, 1], tails={2: None, 1: None}))
