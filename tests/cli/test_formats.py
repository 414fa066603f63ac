"""Format strings and JSON lines of `aiokwire consume`."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from aiokwire.cli.formats import compile_format, json_line
from aiokwire.cli.produce import Form
from aiokwire.errors import InvalidArgument


class Printed(NamedTuple):
    topic: str = "orders"
    partition: int = 2
    offset: int = 7
    timestamp: int = 1_700_000_000_000
    key: bytes | None = b"k"
    value: bytes | None = b"paid"
    headers: tuple[tuple[str, bytes | None], ...] = ()


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("%s\\n", b"paid\n"),
        ("%t/%p/%o@%T", b"orders/2/7@1700000000000"),
        ("%k=%s;%K,%S", b"k=paid;1,4"),
        ("100%% \\x41\\t\\\\", b"100% A\t\\"),
        ("é %s", "é paid".encode()),
        ("\udcff%s\\", b"\xffpaid\\"),  # an argument that is not UTF-8
        ("", b""),
    ],
)
def test_each_directive_of_a_format_prints_its_field(text: str, printed: bytes) -> None:
    assert compile_format(text)(Printed()) == printed


def test_null_keys_and_values_print_nothing_and_have_length_minus_one() -> None:
    assert compile_format("%k|%s|%K|%S")(Printed(key=None, value=None)) == b"||-1|-1"


@pytest.mark.parametrize("text", ["%q", "%s%"])
def test_the_error_names_an_unknown_directive(text: str) -> None:
    with pytest.raises(InvalidArgument, match="no directive"):
        compile_format(text)


def test_produce_reads_json_lines_back() -> None:
    record = Printed(key=b"\xff\x00", value=b'{"a":1}', headers=(("trace", b"1"), ("none", None)))
    line = json_line(record)
    message = Form(True, None, None, None, []).message(line, "test:1")
    assert (message.key, message.value, message.partition) == (b"\xff\x00", b'{"a":1}', 2)
    assert message.headers == [("trace", b"1"), ("none", None)]
    assert message.timestamp == record.timestamp
    assert json.loads(line)["offset"] == 7


def test_header_values_that_are_not_utf8_survive_json_lines() -> None:
    headers = (("trace", b"\xff\x00"), ("none", None), ("empty", b""), ("text", "é".encode()))
    line = json_line(Printed(headers=headers))
    assert json.loads(line)["headers"] == [["trace", None, "/wA="], ["none", None], ["empty", ""], ["text", "é"]]
    assert Form(True, None, None, None, []).message(line, "test:1").headers == list(headers)


def test_a_missing_timestamp_stays_missing_in_json_lines() -> None:
    assert Form(True, None, None, None, []).message(json_line(Printed(timestamp=-1)), "test:1").timestamp is None


def test_a_null_value_stays_null_in_json() -> None:
    message = Form(True, None, None, None, []).message(json_line(Printed(value=None)), "test:1")
    assert message.value is None


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "test:9: not JSON"),
        (b"[1]", "test:9: expected a JSON object"),
        (b'{"valeu": 1}', "unknown field 'valeu'"),
        (b'{"value_base64": "!"}', "test:9"),
        (b'["x"]', "test:9: expected a JSON object"),
        (b"[" * 100_000, "test:9: not JSON"),
        (b'{"value_base64": 5}', "test:9: expected base64, not 5"),
        (b'{"headers": 5}', "test:9: headers must be a JSON object or list, not 5"),
        (b'{"headers": [1]}', r"test:9: a header must be \[name, value\] or \[name, null, base64\], not 1"),
        (b'{"headers": [["a", "b", "c"]]}', "test:9: a header must be"),
        (b'{"headers": {"\\ud800": "x"}}', "test:9: .*surrogates not allowed"),
        (b'{"partition": "1"}', 'test:9: partition must be an integer of 0 or more, not "1"'),
        (b'{"partition": -1}', "test:9: partition must be"),
        (b'{"partition": true}', "test:9: partition must be"),
        (b'{"timestamp": 1.5}', "test:9: timestamp must be an integer of 0 or more, not 1.5"),
        (b'{"timestamp": 99999999999999999999}', "test:9: timestamp must be"),
    ],
)
def test_the_error_for_a_bad_json_line_names_the_line_and_the_fault(line: bytes, complaint: str) -> None:
    with pytest.raises(InvalidArgument, match=complaint):
        Form(True, None, None, None, []).message(line, "test:9")


def test_lines_are_split_at_the_key_separator() -> None:
    form = Form(False, None, b":", None, [])
    message = form.message(b"a:b:c", "test:1")
    assert (message.key, message.value) == (b"a", b"b:c")
    with pytest.raises(InvalidArgument, match="test:2: the line does not contain the key separator ':': 'abc'"):
        form.message(b"abc", "test:2")
    with pytest.raises(InvalidArgument, match=r"separator ':': b'\\xff\.{79}\.\.\.'$"):
        form.message(b"\xff" + b"." * 1000, "test:2")
