"""Progress and summaries of a pipeline, as text and as JSON."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest

from aiokwire.spark.jobs.progress import Progress, line, print_summary


@dataclasses.dataclass(frozen=True)
class _Summary:
    records: int
    topics: tuple[str, ...]
    seconds: float
    lost: dict[str, int]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_progress_line_shows_the_known_figures() -> None:
    assert line("archive", 12.3, 400_000, 1_000_000, "second round") == (
        "archive: 40%, 400,000 of 1,000,000, 12 s, second round"
    )
    assert line("archive", 0.2, 5, None, "") == "archive: 5, 0 s"
    assert line("archive", 3, None, None, "starting Spark") == "archive: 3 s, starting Spark"


def test_lines_are_rare_when_the_output_is_not_a_terminal() -> None:
    stream = io.StringIO()
    with Progress("replay", stream=stream) as progress:
        for done in range(100):
            progress.update(done, 100)
    assert stream.getvalue() == "replay: 0%, 0 of 100, 0 s\n"


def test_a_terminal_has_one_line_that_is_removed_at_the_end() -> None:
    stream = _Terminal()
    with Progress("replay", stream=stream) as progress:
        progress.update(note="starting")
    assert stream.getvalue() == "\rreplay: 0 s, starting\r" + " " * len("replay: 0 s, starting") + "\r"


def test_quiet_progress_shows_nothing() -> None:
    stream = _Terminal()
    with Progress("replay", quiet=True, stream=stream) as progress:
        progress.update(1, 2)
    assert stream.getvalue() == ""


def test_a_summary_is_shown_as_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    summary = _Summary(3_000_000, ("orders", "payments"), 1.5, {})
    print_summary(summary)
    assert capsys.readouterr().out == ("records  3,000,000\ntopics   orders, payments\nseconds  1.50\nlost     none\n")
    print_summary(summary, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "records": 3_000_000,
        "topics": ["orders", "payments"],
        "seconds": 1.5,
        "lost": {},
    }
