"""From a host name to a transport: resolve now, race all addresses (uvloop has no happy eyeballs).

`Connection` is the caller. Sockets come from `loop.create_connection` and names from
`loop.getaddrinfo` only, so that a simulated loop can supply both.
"""

from __future__ import annotations

import asyncio
import ipaddress
import itertools
import os
import socket
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from aiokwire.errors import ConnectionFailed
from aiokwire.net.address import Address
from aiokwire.net.racing import Race

ProtocolT = TypeVar("ProtocolT", bound=asyncio.BaseProtocol)

# After 5 s without a packet the kernel probes the peer 6 times, every 5 s. (Its default is two hours.)
KEEPALIVE: Final = {
    getattr(socket, name): value
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 6))
    if hasattr(socket, name)
}


async def resolve(address: Address) -> list[str]:
    """Return the IP addresses of a host, families alternating, in the resolver's order.

    Raises: ConnectionFailed: the name does not resolve or the address is invalid (stage "resolve").
    """
    if not address.host or not 0 < address.port < 65536:  # as a broker may advertise them
        raise ConnectionFailed(f"{address} is not the address of a broker", address=str(address), stage="resolve")
    try:
        ipaddress.ip_address(address.host.partition("%")[0])
    except ValueError:
        pass
    else:
        return [address.host]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, ValueError) as error:  # ValueError: a name that IDNA cannot write, or with a null in it
        raise ConnectionFailed(
            f"cannot resolve {address.host!r}: {describe_os_error(error)}", address=str(address), stage="resolve"
        ) from error
    families: dict[int, list[str]] = {}
    for family, _type, _proto, _name, place in found:
        families.setdefault(family, []).append(_with_scope(place))
    interleaved = itertools.chain.from_iterable(itertools.zip_longest(*families.values()))
    addresses = list(dict.fromkeys(ip for ip in interleaved if ip is not None))
    if not addresses:
        raise ConnectionFailed(
            f"{address.host!r} resolves to no IP address at all", address=str(address), stage="resolve"
        )
    return addresses


def _with_scope(place: Sequence[object]) -> str:
    """An IP address as text; a link-local IPv6 one keeps the interface that it is valid on."""
    ip = str(place[0])
    if len(place) == 4 and place[3] and "%" not in ip:
        return f"{ip}%{place[3]}"
    return ip


async def dial(
    address: Address, ips: Sequence[str], factory: Callable[[], ProtocolT], *, delay: float, who: str
) -> tuple[ProtocolT, str]:
    """Return the protocol of the first address that accepts, and that address.

    Raises: ConnectionFailed: each address failed; the message names the errors (stage "connect").
    """
    loop = asyncio.get_running_loop()

    async def attempt(ip: str) -> tuple[asyncio.BaseTransport, ProtocolT, str]:
        transport, protocol = await loop.create_connection(factory, ip, address.port)
        return transport, protocol, ip

    race = Race(
        [lambda ip=ip: attempt(ip) for ip in ips],  # type: ignore[misc]  # mypy cannot type a lambda's default
        delay=delay,
        expected=OSError,
        discard=lambda prize: prize[0].abort() if isinstance(prize[0], asyncio.WriteTransport) else prize[0].close(),
    )
    prize = await race.run()
    if prize is None:
        failures = "; ".join(f"{ips[index]}: {describe_os_error(error)}" for index, error in race.errors.items())
        raise ConnectionFailed(f"cannot connect to {who}: {failures}", address=str(address), stage="connect")
    transport, protocol, ip = prize
    _tune(transport)
    return protocol, ip


def _tune(transport: asyncio.BaseTransport) -> None:
    """Disable Nagle's algorithm; enable keepalive, which detects a dead peer on an idle connection.

    A host that lost power does not close its connections, and does not know them after it restarts.
    """
    sock = transport.get_extra_info("socket")
    if sock is not None:  # a simulated network has none
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def describe_os_error(error: BaseException) -> str:
    """Return the system's message: event loops wrap it in different texts."""
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
