"""Accepts the connections of a TLS listener, and shakes hands before the broker sees them.

asyncio's servers are not used with `ssl=`: they keep one context, report no failed handshake, and
send no alert.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc

from aiokwire.async_library import start_soon
from aiokwire.broker.peers import PeerLog
from aiokwire.errors import ConfigurationError
from aiokwire.net import TlsTransport

if TYPE_CHECKING:
    from aiokwire.security import ServerTls

logger: logging.Logger = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 10.0
MOST_HANDSHAKES: Final = 256  # concurrent; one more aborts the oldest
ACCEPTS: Final = 16  # in one turn of the loop
PAUSE: Final = 1.0  # seconds until the next attempt to accept after a system error (too many open files)
_EXPLAINED: Final = {
    "HTTP_REQUEST": "the client sent an HTTP request",
    "WRONG_VERSION_NUMBER": "the client does not use TLS: it needs security_protocol=SSL or SASL_SSL",
    "UNEXPECTED_MESSAGE": "the client does not use TLS: it needs security_protocol=SSL or SASL_SSL",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client has no certificate: it needs ssl_keystore_location",
    "CERTIFICATE_VERIFY_FAILED": "the client's certificate was rejected",
    "UNSUPPORTED_PROTOCOL": "the client supports only TLS versions that ssl.enabled.protocols does not contain",
    "NO_SHARED_CIPHER": "the client supports none of ssl.cipher.suites",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the broker's certificate: it needs ssl_truststore_location",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client rejected the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client rejected the broker's certificate (its host name or authority)",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client rejected the broker's certificate: it has expired",
}


def listening_socket(address: str, port: int, backlog: int) -> socket.socket:
    """Return a socket that is bound and listens; it does not block.

    Raises: OSError.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((address, port))
        listening.listen(backlog)
    except OSError:
        listening.close()
        raise
    return listening


class TlsAcceptor:
    """Accepts at one listening socket."""

    def __init__(
        self, listening: socket.socket, make: Callable[[], asyncio.BufferedProtocol], tls: ServerTls, peer_log: PeerLog
    ) -> None:
        """`make` returns the protocol of a connection, which is connected after the handshake."""
        self._listening = listening
        self._make = make
        self._tls = tls
        self._peer_log = peer_log
        self._tasks: anyio.abc.TaskGroup | None = None  # while it accepts
        self._handshakes: dict[anyio.CancelScope, None] = {}  # the oldest one first

    def start(self, tasks: anyio.abc.TaskGroup) -> None:
        """Accept connections; the handshakes run in `tasks`."""
        self._tasks = tasks
        self._resume()

    def close(self) -> None:
        """Stop accepting and abort the handshakes. May be called again."""
        self._pause()
        self._tasks = None
        self._listening.close()
        for scope in list(self._handshakes):
            scope.cancel()

    def _resume(self) -> None:
        if self._tasks is not None:
            asyncio.get_running_loop().add_reader(self._listening.fileno(), self._accept)

    def _pause(self) -> None:
        if self._tasks is not None and self._listening.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listening.fileno())

    def _accept(self) -> None:
        for _ in range(ACCEPTS):
            if self._tasks is None:
                return
            try:
                connection, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._refused(error)
                return
            connection.setblocking(False)
            if len(self._handshakes) >= MOST_HANDSHAKES:
                next(iter(self._handshakes)).cancel()
            start_soon(self._tasks, self._shake_hands, connection, f"{address[0]}:{address[1]}")

    def _refused(self, error: OSError) -> None:
        remedy = "; raise the limit of open files (ulimit -n)" if error.errno in (errno.EMFILE, errno.ENFILE) else ""
        logger.error("cannot accept connections: %s; retrying in %g s%s", error, PAUSE, remedy)
        self._pause()
        asyncio.get_running_loop().call_later(PAUSE, self._resume)

    async def _shake_hands(self, connection: socket.socket, peer: str) -> None:
        scope = anyio.CancelScope()
        self._handshakes[scope] = None
        try:
            with scope:
                await self._secure(connection, peer)
        finally:
            self._handshakes.pop(scope, None)

    async def _secure(self, connection: socket.socket, peer: str) -> None:
        context = await self._context(connection, peer)
        if context is None:
            return
        protocol = self._make()
        try:
            _, transport = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: TlsTransport(protocol, context, server_side=True), connection
            )
            await transport.shake_hands(HANDSHAKE_SECONDS)
        except OSError as error:  # ssl.SSLError is one
            self._report(peer, error)

    async def _context(self, connection: socket.socket, peer: str) -> ssl.SSLContext | None:
        """Return the context of the handshake; None closes the connection."""
        context = None
        try:
            context = await self._tls.fresh_context()
        except ConfigurationError as error:
            logger.error("the TLS listener cannot serve %s: %s", peer, error)
        finally:
            if context is None:
                connection.close()
        return context

    def _report(self, peer: str, error: OSError) -> None:
        why = explain_handshake(error)
        if why is None:
            logger.debug("connection from %s closed during the TLS handshake: %s", peer, error)
        else:
            self._peer_log.warn(peer, f"the TLS handshake failed: {why}")


def explain_handshake(error: OSError) -> str | None:
    """Return the cause of a failed handshake; None if the client only closed the connection."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate was rejected: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
            return None
        reason = error.reason or str(error)
        return f"{_EXPLAINED[reason]} ({reason})" if reason in _EXPLAINED else reason
    if isinstance(error, ConnectionAbortedError):
        return f"not complete within {HANDSHAKE_SECONDS:g} s"
    return None
