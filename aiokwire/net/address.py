"""Parses `bootstrap_servers` into addresses. Used by the clients and the CLI."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple

from aiokwire._text import printable
from aiokwire.errors import ConfigurationError

DEFAULT_PORT = 9092


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        host = printable(self.host)  # brokers may advertise any text
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_addresses(value: str | Iterable[str]) -> list[Address]:
    """Return addresses from `"a:9092,b"` or `["a:9092", "b"]`, in order, without duplicates.

    The default port is 9092; an IPv6 address with a port needs brackets.

    Raises: ConfigurationError: names the entry that is not an address; also for an empty list.
    """
    if isinstance(value, str):
        entries = value.split(",")
    elif isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        entries = list(value)
    else:
        raise ConfigurationError(f"bootstrap_servers must be a string or a list of strings, not {value!r}")
    for entry in entries:
        if not isinstance(entry, str):
            raise ConfigurationError(f"bootstrap_servers: {entry!r} is not a string; write 'host:port'")
    addresses = [_parse_one(entry.strip()) for entry in entries if entry.strip()]
    if not addresses:
        raise ConfigurationError(f"bootstrap_servers names no broker: {value!r}; write 'host:port,host:port'")
    return list(dict.fromkeys(addresses))


def _parse_one(entry: str) -> Address:
    if "://" in entry:
        raise ConfigurationError(f"bootstrap_servers: {entry!r} is a URL; write 'host:port' without the scheme")
    if entry.startswith("["):
        host, bracket, rest = entry[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ConfigurationError(f"bootstrap_servers: {entry!r} is not an address; write '[IPv6]:port'")
        return Address(_require_ip_v6(host, entry), _port(rest[1:], entry) if rest else DEFAULT_PORT)
    if entry.count(":") > 1:
        return Address(_require_ip_v6(entry, entry), DEFAULT_PORT)
    host, colon, port = entry.partition(":")
    if not host or any(character.isspace() or character == "/" for character in host):
        raise ConfigurationError(f"bootstrap_servers: {entry!r} is not an address; write 'host:port'")
    return Address(host, _port(port, entry) if colon else DEFAULT_PORT)


def _require_ip_v6(host: str, entry: str) -> str:
    try:
        ipaddress.IPv6Address(host)
    except ValueError as error:
        raise ConfigurationError(f"bootstrap_servers: {entry!r} is not an IPv6 address; write '[IPv6]:port'") from error
    return host


def _port(text: str, entry: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise ConfigurationError(f"bootstrap_servers: {entry!r} has no valid port; write 'host:port', 1 to 65535")
    return int(text)
