"""Names to addresses to transports."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from aiokwire.errors import ConnectionFailed
from aiokwire.net import Address, Connection
from aiokwire.net.dial import KEEPALIVE, dial, resolve

Serve = Callable[..., AbstractAsyncContextManager[Address]]


class Resolver:
    """Replaces the loop's lookup: returns fixed addresses and counts the calls."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = answers
        self.asked = 0

    async def __call__(self, host: str, port: int, **_options: Any) -> list[tuple[Any, ...]]:
        ips = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        found: list[tuple[Any, ...]] = []
        for ip in ips:
            if ":" in ip:
                bare, _, scope = ip.partition("%")
                found.append((socket.AF_INET6, socket.SOCK_STREAM, 6, "", (bare, port, 0, int(scope or 0))))
            else:
                found.append((socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)))
        return found


def names(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> Resolver:
    resolver = Resolver(*answers)
    loop_class = type(asyncio.get_running_loop())
    if loop_class.__module__.startswith("uvloop"):
        pytest.skip("uvloop's class is compiled: the same code runs on asyncio's loop")
    monkeypatch.setattr(loop_class, "getaddrinfo", lambda _loop, *args, **options: resolver(*args, **options))
    return resolver


async def echo(talk: Any) -> None:
    await talk.shake_hands()
    await talk.until_closed()


async def test_an_ip_address_is_not_looked_up() -> None:
    assert await resolve(Address("127.0.0.1", 1)) == ["127.0.0.1"]
    assert await resolve(Address("::1", 1)) == ["::1"]


async def test_families_alternate_and_duplicates_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, ["::1", "::2", "::1", "10.0.0.1", "fe80::1%4"])
    assert await resolve(Address("broker", 1)) == ["::1", "10.0.0.1", "::2", "fe80::1%4"]


async def test_the_error_for_an_unresolvable_name_has_its_stage() -> None:
    with pytest.raises(ConnectionFailed, match=r"cannot resolve 'no-such-host\.invalid'") as caught:
        await resolve(Address("no-such-host.invalid", 9092))
    assert (caught.value.stage, caught.value.address) == ("resolve", "no-such-host.invalid:9092")


async def test_a_name_that_idna_cannot_write_is_an_error_too() -> None:
    with pytest.raises(ConnectionFailed, match="cannot resolve"):
        await resolve(Address("a" * 70 + ".example", 9092))


async def test_the_error_for_a_port_without_a_listener_names_the_address(free_port: int) -> None:
    connection = Connection(Address("127.0.0.1", free_port), node_id=4)
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1: Connection refused") as caught:
        await connection.connect()
    assert "node 4" in str(caught.value)
    assert caught.value.stage == "connect"
    assert connection.closed


async def test_a_dead_peer_is_detected_in_seconds(serve: Serve) -> None:
    made: list[Any] = []

    class Noting(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.append(transport)

    async def wait(talk: Any) -> None:
        await talk.until_closed()

    async with serve(wait) as address:
        await dial(address, ["127.0.0.1"], Noting, delay=0.25, who="a broker")
        sock = made[0].get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert len(KEEPALIVE) == 3
        for option, value in KEEPALIVE.items():
            assert sock.getsockopt(socket.IPPROTO_TCP, option) == value <= 10
        made[0].abort()


async def test_every_address_of_a_name_is_tried(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(echo) as address:
        names(monkeypatch, ["127.0.0.2", "127.0.0.1"])  # the listener is on 127.0.0.1 only
        connection = Connection(Address("broker", address.port))
        await connection.connect()
        assert connection.ips == ["127.0.0.2", "127.0.0.1"]
        connection.close()
        await connection.wait_closed()


async def test_each_connect_resolves_the_name_again(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that changed its address is found again (Kubernetes)."""
    async with serve(echo) as address:
        resolver = names(monkeypatch, ["127.0.0.2"], ["127.0.0.1"])
        with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.2: Connection refused"):
            await Connection(Address("broker", address.port)).connect()
        connection = Connection(Address("broker", address.port))
        await connection.connect()
        assert resolver.asked == 2
        connection.close()
        await connection.wait_closed()


async def test_all_addresses_that_failed_are_listed(free_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names(monkeypatch, ["127.0.0.2", "127.0.0.3"])
    with pytest.raises(ConnectionFailed) as caught:
        await Connection(Address("broker", free_port)).connect()
    assert "127.0.0.2: Connection refused; 127.0.0.3: Connection refused" in str(caught.value)
