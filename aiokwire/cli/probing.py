"""Single steps of a connection, for `aiokwire doctor`: name, port, TLS, API versions, mechanisms.

Each returns a sentence about what it found, or raises `Unhealthy` with cause and remedy. The steps
do not use the connections of `aiokwire.net`, so that each can be tried, and fail, alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple, TypeVar

import anyio

from aiokwire.clock import wall_ms
from aiokwire.cluster import ClientConfig
from aiokwire.errors import ConfigurationError, KafkaError
from aiokwire.net import Address
from aiokwire.protocol import ApiKey, Request, Response, decode_response, encode_request
from aiokwire.protocol.messages import api_versions, sasl_handshake
from aiokwire.security import ClientTls, PeerCertificate, explain_tls_error, read_der

ResponseT = TypeVar("ResponseT", bound=Response)

STEP_SECONDS: Final = 3.0
MAX_ANSWER: Final = 1024 * 1024
EXPIRES_SOON: Final = 30  # days


class Unhealthy(Exception):
    """A step failed; the text has the cause and the remedy."""


# --- name and port ----------------------------------------------------------------------------------------------------


async def resolve(address: Address) -> list[str]:
    """Return the IP addresses of a host.

    Raises: Unhealthy: its name does not resolve.
    """
    with contextlib.suppress(ValueError):
        return [str(ipaddress.ip_address(address.host))]
    loop = asyncio.get_running_loop()
    try:
        with anyio.fail_after(STEP_SECONDS):
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise Unhealthy(f"the resolver did not respond within {STEP_SECONDS:.0f} s: check /etc/resolv.conf") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise Unhealthy(f"{reason}: check the spelling, and the DNS of this machine") from None
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


async def connect(address: Address, ips: Sequence[str]) -> str:
    """Return the first IP address that accepts a connection.

    Raises: Unhealthy: none does.
    """
    failures = []
    for ip in ips[:4]:
        try:
            async with _stream(ip, address.port):
                return ip
        except (OSError, TimeoutError) as error:
            failures.append(f"{ip}: {_os_reason(error)}")
    raise Unhealthy("; ".join(failures))


def _os_reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no response within {STEP_SECONDS:.0f} s: a firewall drops the packets, or the host is down"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused: no process listens there; check the port, and that the broker runs"
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)


class _Stream(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@contextlib.asynccontextmanager
async def _stream(
    ip: str, port: int, context: ssl.SSLContext | None = None, host: str | None = None
) -> AsyncIterator[_Stream]:
    """Connect, with TLS if there is a context; abort the connection at the end."""
    with anyio.fail_after(STEP_SECONDS):
        name = host if context is not None else None
        reader, writer = await asyncio.open_connection(ip, port, ssl=context, server_hostname=name)
    try:
        yield _Stream(reader, writer)
    finally:
        writer.transport.abort()


# --- TLS --------------------------------------------------------------------------------------------------------------


async def new_tls(config: ClientConfig) -> ClientTls:
    """Return the TLS of a client, with its files read.

    Raises: Unhealthy: an option or a file cannot be used.
    """
    tls = ClientTls(config.tls)
    try:
        await tls.fresh_context()
    except ConfigurationError as error:
        raise Unhealthy(str(error)) from None
    return tls


async def handshake(tls: ClientTls, address: Address, ip: str) -> str:
    """Return the TLS version, the cipher, and the broker's certificate.

    Raises: Unhealthy: the handshake failed.
    """
    try:
        async with _stream(ip, address.port, await tls.fresh_context(), address.host) as stream:
            secured = stream.writer.get_extra_info("ssl_object")
            peer = read_der(secured.getpeercert(binary_form=True))
            return f"{secured.version()}, {secured.cipher()[0]}; {_described(peer)}"
    except (ssl.SSLError, OSError, TimeoutError) as error:
        refused = await _certificate_of(tls, address, ip)
        reason = explain_tls_error(error, host=address.host, certificate=refused, has_certificate=tls.has_certificate)
        raise Unhealthy(reason) from None


async def _certificate_of(tls: ClientTls, address: Address, ip: str) -> PeerCertificate | None:
    """Return the certificate that was rejected, if the port uses TLS."""
    try:
        async with _stream(ip, address.port, tls.probe_context(), address.host) as stream:
            return read_der(stream.writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
    except (ssl.SSLError, OSError, TimeoutError):
        return None


def _described(peer: PeerCertificate) -> str:
    days = (peer.not_after - wall_ms() / 1000) / 86_400
    soon = f", in {days:.0f} days: renew it" if days < EXPIRES_SOON else ""
    names = ", ".join(peer.names) or "no host"
    return f"certificate {peer.subject} for {names}, by {peer.issuer}, valid until {peer.expiry}{soon}"


# --- requests that need no login --------------------------------------------------------------------------------------


class Greeting(NamedTuple):
    """The broker's responses before a login."""

    apis: int
    mechanisms: tuple[str, ...]  # of the port; none without SASL


async def greet(config: ClientConfig, tls: ClientTls | None, address: Address, ip: str) -> Greeting:
    """Ask for API versions, and with SASL for the mechanisms.

    Raises: Unhealthy: the port does not respond as a broker does.
    """
    context = None if tls is None else await tls.fresh_context()
    try:
        async with _stream(ip, address.port, context, address.host) as stream:
            with anyio.fail_after(STEP_SECONDS):
                versions = await _ask(stream, api_versions.ApiVersionsRequest(), api_versions.ApiVersionsResponse, 0)
                offered = await _mechanisms(stream, config) if config.uses_sasl else ()
    except ssl.SSLError as error:  # with TLS 1.3 a missing client certificate is rejected after the handshake
        certificate = None if tls is None else tls.has_certificate
        raise Unhealthy(explain_tls_error(error, host=address.host, has_certificate=certificate)) from None
    except (EOFError, OSError) as error:
        raise Unhealthy(_silence(config, tls, error)) from None
    except KafkaError as error:
        raise Unhealthy(f"the response is not from a Kafka broker ({error}): check the port") from None
    return Greeting(len(versions.api_keys), offered)


def _silence(config: ClientConfig, tls: ClientTls | None, error: Exception) -> str:
    other = "PLAINTEXT or SASL_PLAINTEXT" if config.uses_tls else "SSL or SASL_SSL"
    what = "no response" if isinstance(error, TimeoutError) else "the broker closed the connection"
    causes = ["this may not be a port of a Kafka broker", f"it may expect another security_protocol ({other})"]
    if tls is not None and tls.has_certificate is False:
        causes = ["it may require a client certificate: set ssl_keystore_location, or ssl_certfile and ssl_keyfile"]
    return f"{what} to ApiVersions: {', or '.join(causes)}"


async def _mechanisms(stream: _Stream, config: ClientConfig) -> tuple[str, ...]:
    request = sasl_handshake.SaslHandshakeRequest(mechanism=config.sasl_mechanism or "")
    answer = await _ask(stream, request, sasl_handshake.SaslHandshakeResponse, 1)
    return tuple(sorted(answer.mechanisms))


async def _ask(stream: _Stream, request: Request, kind: type[ResponseT], version: int) -> ResponseT:
    stream.writer.writelines(encode_request(request, version, 1, "aiokwire-doctor"))
    (size,) = struct.unpack(">i", await stream.reader.readexactly(4))
    if not 4 <= size <= MAX_ANSWER:
        name = ApiKey(request.API).name
        raise Unhealthy(f"the response to {name} has an impossible size: the port may expect TLS, or is not Kafka's")
    return decode_response(await stream.reader.readexactly(size), kind, version)
