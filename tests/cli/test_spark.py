"""`aiokwire spark` without Spark: its help, and its error where PySpark is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner

from aiokwire.cli.main import cli
from aiokwire.cli.output import print_table
from aiokwire.cli.spark import running
from aiokwire.cli.spark.options import duration_option, size_option
from aiokwire.cli.spark.replay import parse_pace, parse_time


def test_the_verbs_are_listed_without_loading_them() -> None:
    shown = CliRunner().invoke(cli, ["spark", "--help"])
    assert shown.exit_code == 0
    for verb in ("archive", "replay", "audit", "sql", "run", "demo"):
        assert f"  {verb} " in shown.output


def test_the_error_names_an_unknown_verb() -> None:
    assert "No such command 'archiv'" in CliRunner().invoke(cli, ["spark", "archiv"]).output


def test_without_pyspark_one_line_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(SystemExit) as ended:
        running.run(lambda *_: None, title="archive")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: the Spark verbs need pyspark: pip install 'aiokwire[spark]'\n"


def test_group_names_are_not_truncated_to_80_columns_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    group = "billing-" * 30
    print_table("Consumer groups", ["group", "offsets behind"], [[group, 12]])
    assert [line for line in capsys.readouterr().out.splitlines() if group in line and "12" in line]


CONTEXT = click.Context(click.Command("x"))
PARAMETER = click.Option(["--x"])


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (size_option, "64m", 64 << 20),
        (size_option, "10", 10),
        (size_option, "1GiB", 1 << 30),
        (duration_option, "30s", 30),
        (duration_option, "250ms", 0.25),
        (duration_option, "1.5m", 90),
        (duration_option, None, None),
        (parse_pace, "10x", 10),
        (parse_pace, "0.5", 0.5),
        (parse_pace, "fast", None),
        (parse_time, "1763000000000", 1_763_000_000_000),
        (parse_time, "1970-01-02", 86_400_000),
        (parse_time, "1970-01-02T01:00:00+01:00", 86_400_000),
        (parse_time, None, None),
    ],
)
def test_option_values_are_parsed(parse: Callable[..., object], text: str, value: object) -> None:
    assert parse(CONTEXT, PARAMETER, text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (size_option, "0"),
        (size_option, "big"),
        (duration_option, "soon"),
        (duration_option, "30"),
        (parse_pace, "0x"),
        (parse_pace, "quick"),
        (parse_time, "x"),
    ],
)
def test_the_error_names_an_invalid_value(parse: Callable[..., object], text: str) -> None:
    with pytest.raises(click.BadParameter, match=f"'{text}' is no|not '{text}'"):
        parse(CONTEXT, PARAMETER, text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["archive", "--to", "x"], "name the topics"),
        (["archive", "orders", "--to", "x", "--compact"], "leave out the topics"),
        (["archive", "--to", "x", "--compact", "--verify"], "one after the other"),
        (["archive", "orders", "--to", "x", "--option", "nonsense"], "is not NAME=VALUE"),
        (["archive", "orders"], "Missing option '--to'"),
        (["replay"], "Missing argument 'PATH'"),
    ],
)
def test_invalid_commands_are_refused_before_spark_starts(arguments: list[str], message: str) -> None:
    refused = CliRunner().invoke(cli, ["spark", *arguments])
    assert refused.exit_code == 2
    assert message in refused.output
