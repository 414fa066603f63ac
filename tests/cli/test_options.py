"""Values of the command line's options."""

from __future__ import annotations

import datetime

import click
import pytest

from aiokwire.cli.bench import percentiles
from aiokwire.cli.consume import parse_start
from aiokwire.cli.options import parse_headers, parse_settings, parse_topic_partitions


def test_settings_are_parsed_as_json_where_possible() -> None:
    assert parse_settings(("linger_ms=5", "client_id=me", "x=true", "y=a=b")) == {
        "linger_ms": 5,
        "client_id": "me",
        "x": True,
        "y": "a=b",
    }


def test_settings_accept_kafkas_dotted_names() -> None:
    assert parse_settings(("linger.ms=5", "client.id=me")) == {"linger_ms": 5, "client_id": "me"}


def test_a_topic_may_name_its_partitions() -> None:
    assert parse_topic_partitions("orders:3") == ("orders", 3)
    assert parse_topic_partitions("orders") == ("orders", 1)


@pytest.mark.parametrize("text", ["orders:", "orders:0", ":3", "orders:x"])
def test_the_error_names_a_bad_topic(text: str) -> None:
    with pytest.raises(click.BadParameter, match="NAME:PARTITIONS"):
        parse_topic_partitions(text)


def test_headers_may_be_null() -> None:
    assert parse_headers(("a=1", "b", "c=")) == [("a", b"1"), ("b", None), ("c", b"")]


def test_headers_keep_bytes_that_are_not_utf8() -> None:
    assert parse_headers(("h=\udcff",)) == [("h", b"\xff")]
    with pytest.raises(click.BadParameter, match="not UTF-8"):
        parse_headers(("\udcff=1",))


def test_a_start_is_a_keyword_an_offset_or_a_time() -> None:
    assert parse_start("beginning") == parse_start("earliest") == "beginning"
    assert parse_start("-5") == -5
    moment = parse_start("2026-01-31T12:00+00:00")
    assert isinstance(moment, datetime.datetime)
    assert moment.timestamp() == 1769860800
    with pytest.raises(click.BadParameter, match="ISO 8601"):
        parse_start("yesterday")


def test_percentiles_are_in_milliseconds() -> None:
    figures = percentiles([number / 1000 for number in range(100)])
    assert figures["p50"] == pytest.approx(50)
    assert figures["max"] == pytest.approx(99)
    assert percentiles([]) == {}
