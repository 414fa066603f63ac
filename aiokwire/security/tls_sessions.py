"""The TLS sessions of a client's connections, for later connections to the same brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

LIMIT: Final = 1_000  # addresses


class TlsSessions:
    """The last session with each address, by which the next handshake omits the certificates.

    RFC 8446, 2.2; RFC 5077. A session belongs to its context: after a change of certificates or
    trust the first handshake with each broker is a full one. Thread-safe.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[ssl.SSLContext, ssl.SSLSession]] = {}

    def find(self, context: ssl.SSLContext, address: str) -> ssl.SSLSession | None:
        """Return the session to resume with an address; None for a full handshake."""
        owner, session = self._sessions.get(address, (None, None))
        return session if owner is context else None

    def keep(self, context: ssl.SSLContext, address: str, session: ssl.SSLSession) -> None:
        """Keep the session of a connection that has ended, instead of an older one."""
        if address in self._sessions or len(self._sessions) < LIMIT:
            self._sessions[address] = (context, session)
