"""The parts of the comparison of workers that decide what its tables contain."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from integration.bench.workers.environments import ROOT, command_of
from integration.bench.workers.kills import Outcome, compare
from integration.bench.workers.meter import Figures, Job, arguments_of
from integration.bench.workers.plan import Case, cases
from integration.bench.workers.report import show, show_kills, summary

JOB = Job("asyncio", "127.0.0.1:9092", "orders", "billing", 10.0, 64, sys.maxsize, warm_up=0.1, seconds=0.3)


def test_the_ideal_is_bounded_by_the_concurrency_and_by_the_keys() -> None:
    assert Case(10, 64, 1_000).ideal == 6_400
    assert Case(10, 64, 10).ideal == 1_000
    assert math.isinf(Case(0, 64, 10).ideal)
    assert cases([0, 10], [1], [10, 20]) == [Case(0, 1, 10), Case(0, 1, 20), Case(10, 1, 10), Case(10, 1, 20)]


def test_a_process_receives_its_job_by_the_command_line() -> None:
    job = replace(JOB, journal="/tmp/a=b", slow_every=500, slow_ms=2_000.0)
    code = "from integration.bench.workers.meter import *; print(repr(given_job()))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments_of(job)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == repr(job)


def test_the_bare_loop_reaches_most_of_what_is_ideal_and_never_more() -> None:
    done = subprocess.run(command_of(JOB), cwd=ROOT, capture_output=True, text=True, check=True, timeout=50)
    figures = Figures(**json.loads(done.stdout))
    assert 0 < figures.count / figures.seconds < 1.1 * 6_400
    assert figures.seconds >= 0.3
    assert figures.peak_mib > 1


def test_a_topic_that_is_too_small_for_the_window_is_a_failure() -> None:
    job = replace(JOB, handler_ms=0.0, records=1_000)
    done = subprocess.run(command_of(job), cwd=ROOT, capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 1
    assert "all 1000 records were handled before the window: write more" in done.stderr


def test_a_summary_has_medians_and_ratios_within_a_repetition() -> None:
    ours = [Figures(3_000, 1.0, 0.1, 40.0), Figures(8_000, 2.0, 0.2, 50.0), Figures(1_000, 1.0, 0.1, 45.0)]
    theirs = [Figures(1_000, 1.0, 1.0, 80.0), Figures(1_000, 1.0, 1.0, 80.0), None]
    found = summary({"aiokwire": ours, "faust": theirs, "faststream": [None]})
    assert list(found) == ["aiokwire", "faust"]
    assert (found["aiokwire"].rate, found["aiokwire"].slowest, found["aiokwire"].fastest) == (3_000, 1_000, 4_000)
    assert found["aiokwire"].peak_mib == 50
    assert found["aiokwire"].cpu_per_million == pytest.approx(33.33, abs=0.01)
    assert (found["faust"].rate, found["faust"].times, found["faust"].failed) == (1_000, 3.5, 1)


def test_the_tables_name_the_ratio_the_share_of_the_ideal_and_what_was_repeated() -> None:
    printed = io.StringIO()
    console = Console(file=printed, width=120)
    runs = {"aiokwire": [Figures(6_000, 1.0, 0.1, 40.0)], "faust": [Figures(3_000, 1.0, 0.1, 80.0)]}
    show(console, Case(10, 64, 1_000), summary(runs))
    show_kills(console, {"faust": [Outcome(20_000, 1_500, 0), Outcome(21_000, 900, 7)]})
    text = printed.getvalue()
    assert "handlers of 10 ms, concurrency 64, 1,000 keys" in text
    assert [cell.strip() for cell in next(_cells(text, "faust"))[3:5]] == ["2.00", "47"]
    assert [cell.strip() for cell in list(_cells(text, "faust"))[1][1:]] == ["20,000, 21,000", "1,500, 900", "0, 7"]


def _cells(text: str, client: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a client."""
    for line in text.splitlines():
        if line.strip("│ ").startswith(client):
            yield line.strip("│").split("│")


def test_a_record_that_both_processes_finished_is_repeated_and_a_cut_line_is_none() -> None:
    before = ["0 1\n", "0 2\n", "1 1\n", "1"]
    after = ["0 2\n", "0 2\n", "0 3\n", "1 2\n"]
    assert compare(before, after, records=6) == Outcome(finished=3, repeated=1, lost=1)


def test_a_process_notes_what_it_has_handled(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    code = (
        "import asyncio; from types import SimpleNamespace; from integration.bench.workers.meter import *; "
        "handle = Meter(given_job()).handler(); asyncio.run(handle(SimpleNamespace(partition=3, offset=17)))"
    )
    job = replace(JOB, handler_ms=0.0, journal=str(journal))
    subprocess.run([sys.executable, "-c", code, *arguments_of(job)], cwd=ROOT, check=True, timeout=50)
    assert journal.read_text() == "3 17\n"
