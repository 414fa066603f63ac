"""The states and events of a connection; `Connection` fires the events."""

from __future__ import annotations

import enum


class ConnectionState(enum.Enum):
    """The states of a connection. A closed connection is replaced, not reopened."""

    NEW = enum.auto()
    CONNECTING = enum.auto()  # resolving, and racing the addresses
    HANDSHAKING = enum.auto()  # ApiVersions, later TLS and SASL
    READY = enum.auto()
    CLOSING = enum.auto()  # until the transport reports `connection_lost`
    CLOSED = enum.auto()


class ConnectionEvent(enum.Enum):
    """The events of a connection."""

    CONNECT = enum.auto()
    ESTABLISHED = enum.auto()
    REFUSED = enum.auto()  # the peer closed the connection at a handshake request: try an older version on a new socket
    ACCEPTED = enum.auto()
    CLOSE = enum.auto()
    GONE = enum.auto()


_S = ConnectionState
_E = ConnectionEvent

TRANSITIONS: dict[tuple[ConnectionState, ConnectionEvent], ConnectionState] = {
    (_S.NEW, _E.CONNECT): _S.CONNECTING,
    (_S.NEW, _E.CLOSE): _S.CLOSED,
    (_S.CONNECTING, _E.ESTABLISHED): _S.HANDSHAKING,
    (_S.CONNECTING, _E.CLOSE): _S.CLOSED,
    (_S.HANDSHAKING, _E.REFUSED): _S.CONNECTING,
    (_S.HANDSHAKING, _E.ACCEPTED): _S.READY,
    (_S.HANDSHAKING, _E.CLOSE): _S.CLOSING,
    (_S.READY, _E.CLOSE): _S.CLOSING,
    (_S.CLOSING, _E.GONE): _S.CLOSED,
}
