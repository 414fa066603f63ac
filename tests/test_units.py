"""Durations and sizes are parsed in one way everywhere."""

from __future__ import annotations

import pytest

from aiokwire.units import duration_in_words, parse_duration, parse_iso_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("10us", 1e-5),
        ("30s", 30),
        (" 30 S ", 30),
        ("10 seconds", 10),
        ("1 second", 1),
        ("1.5m", 90),
        ("15min", 900),
        ("2 hours", 7200),
        ("1d", 86_400),
        ("2 weeks", 1_209_600),
        ("0", 0),
    ],
)
def test_a_duration_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


def test_a_duration_without_a_unit_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match=r"must have a unit, such as 30s or 30ms, not '30'"):
        parse_duration("30")


def test_a_bare_number_may_have_the_unit_that_another_tool_defines() -> None:
    assert parse_duration("900000", bare_unit="ms") == 900
    assert parse_duration("2s", bare_unit="ms") == 2


@pytest.mark.parametrize("text", ["", "s", "soon", "-1s", "1x", "1e3s", "1 2s", "PT1H", "٣s"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration such as 500ms, 30s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2 hours", "2 hours"),
        ("1 hour", "1 hour"),
        ("200 ms", "200 milliseconds"),
        ("10s", "10 seconds"),
        ("5m", "5 minutes"),
        ("1.5h", "5400000 milliseconds"),
        ("0", "0 seconds"),
    ],
)
def test_a_duration_is_formatted_as_a_spark_interval(text: str, words: str) -> None:
    assert duration_in_words(text) == words


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("PT1H30M", 5_400_000), ("P2D", 172_800_000), ("pt0.5s", 500), ("PT0S", 0)]
)
def test_an_iso_duration_is_parsed(text: str, milliseconds: int) -> None:
    assert parse_iso_duration(text) == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "P1Y", "-PT1H"])
def test_an_invalid_iso_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be an ISO 8601 duration"):
        parse_iso_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("67108864", 64 << 20), ("64m", 64 << 20), ("64 MiB", 64 << 20), ("1GB", 1 << 30), ("2t", 2 << 40), ("10b", 10)],
)
def test_a_size_is_a_number_of_bytes_or_binary_multiples(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "big", "-1", "1.5g", "64mm"])
def test_an_invalid_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a size such as 67108864 \(bytes\) or 64m"):
        parse_size(text)
