"""From a host name to a transport: resolve now, race all addresses (uvloop has no happy eyeballs).

`Connection` is the caller. Sockets come from `loop.create_connection` and names from
`loop.getaddrinfo` only, so that a simulated loop can supply both.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import itertools
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar, cast

from aiokwire.errors import AuthenticationFailed, ConnectionFailed, KafkaError
from aiokwire.net.address import Address
from aiokwire.net.racing import Race
from aiokwire.net.tls import TlsTransport
from aiokwire.security import TlsSessions
from aiokwire.threads import run_in_thread

ProtocolT = TypeVar("ProtocolT", bound=asyncio.BaseProtocol)

# After 5 s without a packet the kernel probes the peer 6 times, every 5 s. (Its default is two hours.)
KEEPALIVE: Final = {
    getattr(socket, name): value
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 6))
    if hasattr(socket, name)
}

# What a failed TLS handshake raises: an alert or a bad certificate, the end of the stream, a timeout.
_TLS_ERRORS: Final = (ssl.SSLError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)


class Explain(Protocol):
    """Turns a failed TLS handshake into the error for the caller."""

    def __call__(self, error: Exception, certificate: bytes | None = None) -> KafkaError:
        """`certificate`: the peer's rejected certificate (DER), if known. May block with it."""
        ...


class Tls(NamedTuple):
    """TLS for one connection attempt."""

    context: ssl.SSLContext
    handshake_timeout: float  # seconds
    explain: Explain
    probe: Callable[[], ssl.SSLContext]  # a context that accepts every certificate, to read a rejected one
    sessions: TlsSessions


async def resolve(address: Address) -> list[str]:
    """Return the IP addresses of a host, families alternating, in the resolver's order.

    Raises: ConnectionFailed: the name does not resolve or the address is invalid (stage "resolve").
    """
    if not address.host or not 0 < address.port < 65536:  # a broker may advertise such addresses
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
    address: Address,
    ips: Sequence[str],
    factory: Callable[[], ProtocolT],
    *,
    delay: float,
    who: str,
    tls: Tls | None = None,
) -> tuple[ProtocolT, str]:
    """Return the protocol of the first address that accepts, and that address.

    With `tls` an address accepts when its TLS handshake is complete. The certificate is checked for
    the host of `address`, not for the IP address.

    Raises: ConnectionFailed: each address failed; the message names the errors (stage "connect" or
    "tls"); AuthenticationFailed: one of the two sides refuses the other's certificate.
    """
    loop = asyncio.get_running_loop()

    async def attempt(ip: str) -> tuple[asyncio.BaseTransport, ProtocolT, str]:
        if tls is None:
            transport, protocol = await loop.create_connection(factory, ip, address.port)
            return transport, protocol, ip
        protocol = factory()
        return await _dial_tls(cast("asyncio.BufferedProtocol", protocol), ip, address, tls), protocol, ip

    race = Race(
        [lambda ip=ip: attempt(ip) for ip in ips],  # type: ignore[misc]  # mypy cannot type a lambda's default
        delay=delay,
        expected=OSError,
        discard=lambda prize: prize[0].abort() if isinstance(prize[0], asyncio.WriteTransport) else prize[0].close(),
    )
    prize = await race.run()
    if prize is None:
        raise await _failure(address, who, {ips[index]: error for index, error in race.errors.items()}, tls)
    transport, protocol, ip = prize
    _tune(transport)
    return protocol, ip


async def _dial_tls(protocol: asyncio.BufferedProtocol, ip: str, address: Address, tls: Tls) -> TlsTransport:
    def make() -> TlsTransport:
        return TlsTransport(
            protocol,
            tls.context,
            server_hostname=_name_of(address.host),
            session=tls.sessions.find(tls.context, str(address)),
            keep_session=functools.partial(tls.sessions.keep, tls.context, str(address)),
        )

    _, transport = await asyncio.get_running_loop().create_connection(make, ip, address.port)
    await transport.shake_hands(tls.handshake_timeout)
    return transport


def _name_of(host: str) -> str:
    return host.partition("%")[0].rstrip(".")  # certificates name no interface and no root


def _tls_options(tls: Tls, host: str) -> dict[str, Any]:
    return {
        "ssl": tls.context,
        "server_hostname": _name_of(host),
        "ssl_handshake_timeout": tls.handshake_timeout,
    }


async def _failure(address: Address, who: str, errors: dict[str, Exception], tls: Tls | None) -> KafkaError:
    """Return the error for a host of which no address could be connected to."""
    stage = "connect"
    reasons = []
    for ip, error in errors.items():
        reason = describe_os_error(error)
        if tls is not None and isinstance(error, _TLS_ERRORS):
            explained = await _explain(tls, error, ip, address)
            if isinstance(explained, AuthenticationFailed):
                return explained
            stage, reason = "tls", str(explained)
        reasons.append(f"{ip}: {reason}")
    return ConnectionFailed(f"cannot connect to {who}: {'; '.join(reasons)}", address=str(address), stage=stage)


async def _explain(tls: Tls, error: Exception, ip: str, address: Address) -> KafkaError:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return tls.explain(error)
    certificate = await _refused_certificate(tls, ip, address)
    if certificate is None:
        return tls.explain(error)
    return await run_in_thread(tls.explain, error, certificate)


async def _refused_certificate(tls: Tls, ip: str, address: Address) -> bytes | None:
    """Return the certificate that a peer presents (DER); the failed handshake does not keep it."""
    options = _tls_options(tls._replace(context=tls.probe()), address.host)
    try:
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, ip, address.port, **options)
    except OSError:
        return None
    try:
        certificate: bytes | None = transport.get_extra_info("ssl_object").getpeercert(True)
    finally:
        transport.abort()
    return certificate


def _tune(transport: asyncio.BaseTransport) -> None:
    """Disable Nagle's algorithm; enable keepalive, which detects a dead peer on an idle connection.

    A host that lost power does not close its connections, nor know them after a restart.
    """
    sock = transport.get_extra_info("socket")
    if sock is not None:  # a simulated network has none
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def describe_os_error(error: BaseException) -> str:
    """Return the system's message: event loops wrap it in different texts."""
    if isinstance(error, (socket.gaierror, ssl.SSLError)):
        return error.strerror or str(error)
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
