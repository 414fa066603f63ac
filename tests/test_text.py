"""Text from the network in logs, error messages and tables."""

from __future__ import annotations

import pytest

from aiokwire._text import printable
from aiokwire.errors import BrokerError, ConnectionFailed, KafkaError, RequestTimedOut, error_for
from aiokwire.types import TopicPartition


@pytest.mark.parametrize("text", ["", "orders", "größe.東京", "a b", "C:\\temp", "👩‍👩‍👧", "no\u00a0break"])
def test_text_without_control_characters_is_unchanged(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nERROR forged", r"a\nERROR forged"),
        ("a\r\tb", r"a\r\tb"),
        ("\x1b[2J\x07\x00\x7f", r"\x1b[2J\x07\x00\x7f"),
        ("\x85\x9b31m", r"\x85\x9b31m"),
        ("x\u2028y\u2029z", r"x\u2028y\u2029z"),
        ("\u202egpj.exe\u202c\u2066\u2069\u200f\u061c", r"\u202egpj.exe\u202c\u2066\u2069\u200f\u061c"),
        ("\ufeffx\ud800", r"\ufeffx\ud800"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert len(printable(text).splitlines()) == 1


def test_any_object_can_be_shown() -> None:
    assert printable(42) == "42"
    assert printable(ConnectionFailed("no\nroute")) == r"no\nroute"


def test_errors_are_one_line_without_control_characters() -> None:
    for error in (
        KafkaError("a\x1bb\nc"),
        RequestTimedOut("a\x1bb\nc"),
        BrokerError("a\x1bb\nc"),
        error_for(3, "a\x1bb\nc"),
    ):
        assert "\x1b" not in str(error)
        assert "\n" not in str(error)
        assert r"a\x1bb\nc" in str(error)


def test_topic_and_partition_in_a_log_line_are_escaped() -> None:
    assert str(TopicPartition("a\nb", 3)) == r"a\nb[3]"
