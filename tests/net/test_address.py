"""Bootstrap lists as users write them."""

from __future__ import annotations

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.net import Address, parse_addresses


def test_a_comma_list_and_a_python_list_mean_the_same() -> None:
    expected = [Address("a", 9092), Address("b", 1)]
    assert parse_addresses("a, b:1,") == expected
    assert parse_addresses(["a:9092", "b:1"]) == expected


def test_ipv6_addresses_stand_in_brackets_or_without_a_port() -> None:
    assert parse_addresses("[::1]:7,::1,[fe80::2]") == [
        Address("::1", 7),
        Address("::1", 9092),
        Address("fe80::2", 9092),
    ]
    assert str(Address("::1", 7)) == "[::1]:7"
    assert str(Address("a", 7)) == "a:7"


def test_duplicate_addresses_are_kept_once() -> None:
    assert parse_addresses("a,a:9092,a:1") == [Address("a", 9092), Address("a", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no broker"),
        (" , ", "names no broker"),
        ([], "names no broker"),
        ("a:x", "no valid port"),
        ("a:0", "no valid port"),
        ("a:65536", "no valid port"),
        ("a:", "no valid port"),
        (":9092", "not an address"),
        ("a b:1", "not an address"),
        ("[::1:9092", "not an address"),
        ("[::1]9092", "not an address"),
        ("[nonsense]:1", "not an IPv6 address"),
        ("1:2:3", "not an IPv6 address"),
        ("PLAINTEXT://a:9092", "without the scheme"),
        (7, "must be a string"),
        (b"a:1", "must be a string"),
        ([("a", 1)], "is not a string"),
    ],
)
def test_the_error_names_an_invalid_address(text: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_addresses(text)  # type: ignore[arg-type]  # what users may write


def test_an_advertised_host_name_cannot_forge_a_log_line() -> None:
    assert str(Address("evil\nERROR root hacked", 9092)) == r"evil\nERROR root hacked:9092"
