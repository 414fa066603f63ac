"""Values as text, JSON and table cells."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import Row

from aiokwire.cli.main import cli
from aiokwire.spark.sql.output import cell, plain_value, text_of


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (b"text", "text"),
        (bytearray(b"\xff\x00"), "0xff00"),
        (decimal.Decimal("1.10"), "1.10"),
        (float("nan"), "nan"),
        (1.5, 1.5),
        (datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC), "2026-01-31T12:00:00+00:00"),
        (datetime.date(2026, 1, 31), "2026-01-31"),
        (datetime.timedelta(minutes=1), 60.0),
        (Row(a=1, b=[b"x", None]), {"a": 1, "b": ["x", None]}),
        ({b"k": (1, 2)}, {"k": [1, 2]}),
        (True, True),
        (None, None),
    ],
)
def test_values_become_their_json_form(value: Any, plain: Any) -> None:
    assert plain_value(value) == plain
    json.dumps(plain_value(value), allow_nan=False)


def test_cells_keep_numbers_and_spell_out_the_rest() -> None:
    assert [cell(value) for value in (1, 2.5, True, None, b"x", Row(a=1), "t")] == [
        1, 2.5, "true", "null", "x", '{"a":1}', "t",
    ]  # fmt: skip
    assert text_of(None, "") == ""


def test_invalid_options_of_the_command_are_refused(tmp_path: Any) -> None:
    for arguments, message in (
        (("--format", "parquet"), "--format parquet needs --output"),
        (("--decode", "orders"), "'orders' is not TOPIC=string"),
        (("--decode", f"orders=json:@{tmp_path}/none.json"), "none.json: No such file"),
    ):
        shown = CliRunner().invoke(cli, ["spark", "sql", "select 1", *arguments])
        assert shown.exit_code == 2
        assert message in " ".join(shown.output.split())
