"""The Spark demo's check names each hour that is missing, duplicated, different or too early."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest

from aiokwire.cli.spark.demo.direct import Hour, Place, compare, compute, read_hour, time_of
from aiokwire.cli.spark.demo.process import DECLARATION, java_problem, java_version, last_error
from aiokwire.cli.spark.demo.report import by_hour_of_day, check
from aiokwire.cli.spark.demo.work import PATIENCE, Outcome, Patience, Stalled
from aiokwire.spark.pipelines import prepare


def flight(time: str, carrier: str = "UA", delay: int | None = 10) -> dict[str, Any]:
    return {"time_hour": time, "carrier": carrier, "arr_delay": delay}


FLIGHTS = [
    flight("2013-01-01T10:00:00Z"),
    flight("2013-01-01T10:00:00Z", delay=None),
    flight("2013-01-01T10:00:00Z", "AA", -4),
    flight("2013-01-02T11:00:00Z"),
    flight("2013-01-09T11:00:00Z"),  # one hour later would close the hour above
]
FIRST: Place = (time_of("2013-01-01T10:00:00Z"), "UA")
SECOND: Place = (time_of("2013-01-01T10:00:00Z"), "AA")
RIGHT = [(FIRST, Hour(2, 1, 10)), (SECOND, Hour(1, 1, -4))]


def test_hours_are_computed_and_parsed() -> None:
    hours = compute(FLIGHTS)
    assert len(hours) == 4
    assert hours[FIRST] == Hour(2, 1, 10)
    value = json.dumps(
        {"hour": "2013-01-01T10:00:00.000Z", "carrier": "UA", "flights": 2, "arrived": 1, "minutes": 10}
    ).encode()
    assert read_hour(value) == RIGHT[0]


def test_closed_hours_are_compared() -> None:
    found = compare(compute(FLIGHTS), RIGHT)
    assert found.same
    assert (found.expected, found.open) == (2, 2)


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (RIGHT[:1], "missing"),
        ([*RIGHT, RIGHT[0]], "doubled"),
        ([RIGHT[0], (SECOND, Hour(1, 1, 4))], "different"),
        ([*RIGHT, ((time_of("2013-01-02T11:00:00Z"), "UA"), Hour(1, 1, 10))], "unexpected"),
    ],
)
def test_the_check_fails_and_names_the_fault(
    found: list[tuple[Place, Hour]], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = compare(compute(FLIGHTS), found)
    assert not compared.same
    assert [name for name in ("missing", "doubled", "different", "unexpected") if getattr(compared, name)] == [what]
    assert not check(Outcome({}, hours=found, in_log=len(found), comparison=compared))
    assert "check FAILED" in capsys.readouterr().out


def test_rows_of_the_open_transaction_must_be_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    compared = compare(compute(FLIGHTS), RIGHT)
    outcome = Outcome({}, hours=RIGHT, in_log=5, comparison=compared, left_open=3)
    assert check(outcome)
    outcome.in_log = 2
    assert not check(outcome)
    assert "FAIL the open transaction was aborted (3 records" in capsys.readouterr().out


def test_a_slow_pipeline_may_continue_and_a_stalled_one_ends_with_one_sentence(tmp_path: Path) -> None:
    """Regression: a deadline of five minutes ended the demo on a busy machine, with a traceback."""
    patience = Patience("the pipeline", tmp_path / "run-1.log")
    for minute in range(60):
        patience.note(minute, 60.0 * minute)
    patience.note(59, 59 * 60 + PATIENCE - 1)
    with pytest.raises(
        Stalled, match=r"^the pipeline made no progress for 300 s .*run-1\.log; start the demo again"
    ) as ended:
        patience.note(59, 59 * 60 + PATIENCE)
    assert "\n" not in str(ended.value)


def test_the_failure_of_a_pipeline_is_reported_by_its_error_without_the_jvms_log() -> None:
    log = (
        "starting\n26/11/22 ERROR MicroBatchExecution: failed\n\tat org.apache.spark\nerror: sink 'delays': no broker\n"
    )
    assert last_error(log) == "sink 'delays': no broker"
    assert last_error("killed\n\n") == "killed"
    assert last_error("") == "it printed nothing"


def test_delays_by_hour_of_day() -> None:
    carriers, means = by_hour_of_day(Outcome({}, hours=RIGHT))
    assert carriers == ["UA", "AA"]
    assert (means[0][5], means[1][5]) == (10, -4), "ten o'clock in London is five in New York"
    assert means[0][6] != means[0][6], "there are no flights"


def test_the_declared_watermark_equals_that_of_the_comparison() -> None:
    from aiokwire.cli.spark.demo import direct

    source = prepare(DECLARATION, brokers=False).pipeline.sources[0]
    assert source.watermark is not None
    assert source.watermark.delay == f"{direct.LATENESS // datetime.timedelta(days=1)} days"


def test_the_java_version_is_parsed() -> None:
    assert java_version('openjdk version "17.0.15" 2025-04-15') == 17
    assert java_version('java version "1.8.0_202"') == 8
    assert java_version("command not found") is None


def test_a_missing_java_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    problem = java_problem()
    assert problem is not None
    assert problem.startswith("Spark needs Java 17 or newer")
    assert str(tmp_path) in problem
    (tmp_path / "bin").mkdir()
    old = tmp_path / "bin" / "java"
    old.write_text("#!/bin/sh\necho 'java version \"1.8.0_202\"' >&2\n")
    old.chmod(0o755)
    assert str(java_problem()).endswith(f"{old} is Java 8")


def test_the_documents_show_the_current_pipeline() -> None:
    text = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
    shown = next(block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "[steps.hourly]" in block)
    declared = DECLARATION.read_text()
    for part in shown.strip().split("\n\n"):
        assert part in declared
