"""`aiokwire spark` without Spark: its help, and what it says where PySpark is missing."""

from __future__ import annotations

import importlib.util

import pytest
from click.testing import CliRunner

from aiokwire.cli.main import cli
from aiokwire.cli.spark import running


def test_the_verbs_are_listed_without_loading_them() -> None:
    shown = CliRunner().invoke(cli, ["spark", "--help"])
    assert shown.exit_code == 0
    for verb in ("archive", "replay", "audit", "sql", "run", "demo"):
        assert f"  {verb} " in shown.output


def test_a_verb_that_is_not_there_is_named() -> None:
    assert "No such command 'archiv'" in CliRunner().invoke(cli, ["spark", "archiv"]).output


def test_without_pyspark_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(SystemExit) as ended:
        running.run(lambda *_: None, title="archive")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: the Spark verbs need pyspark: pip install 'aiokwire[spark]'\n"
