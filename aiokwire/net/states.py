"""The states of a connection and what moves it between them; `Connection` fires the events."""

from __future__ import annotations

import enum


class ConnectionState(enum.Enum):
    """Where a connection is in its life; it has one life: a closed one is replaced, not opened again."""

    NEW = enum.auto()
    CONNECTING = enum.auto()  # resolving, and racing the addresses
    HANDSHAKING = enum.auto()  # ApiVersions, later TLS and SASL
    READY = enum.auto()
    CLOSING = enum.auto()  # the transport still has to say that it is gone
    CLOSED = enum.auto()


class ConnectionEvent(enum.Enum):
    """What happens to a connection."""

    CONNECT = enum.auto()
    ESTABLISHED = enum.auto()
    REFUSED = enum.auto()  # the peer hung up on a handshake request: try an older form on a new socket
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
