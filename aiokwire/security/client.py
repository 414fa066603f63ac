"""The TLS context and the login that the connections of one client share.

`aiokwire.net` asks it for a context and an exchange whenever a connection is opened. The methods
may be called on several event loops: the heartbeat thread has its own.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from aiokwire.errors import AuthenticationFailed, ConnectionFailed, KafkaError
from aiokwire.security.config import SecurityConfig
from aiokwire.security.login import new_login
from aiokwire.security.sasl import SaslClient
from aiokwire.security.tls_sessions import TlsSessions
from aiokwire.threads import run_in_thread

if TYPE_CHECKING:
    from aiokwire.security.certificate_info import PeerCertificate
    from aiokwire.security.tls import ClientTls


class ClientSecurity:
    """The security of one client's connections."""

    def __init__(self, config: SecurityConfig) -> None:
        self._tls = _new_tls(config) if config.uses_tls else None
        self._login = new_login(config) if config.uses_sasl else None
        self._sessions = TlsSessions()

    @property
    def tls_sessions(self) -> TlsSessions:
        """The sessions that connections resume."""
        return self._sessions

    @property
    def uses_tls(self) -> bool:
        """Whether connections use TLS."""
        return self._tls is not None

    @property
    def uses_sasl(self) -> bool:
        """Whether connections log in by SASL."""
        return self._login is not None

    @property
    def has_certificate(self) -> bool | None:
        """Whether the client presents a certificate; None: unknown, with a ready context."""
        return None if self._tls is None else self._tls.has_certificate

    async def prepare(self) -> None:
        """Read the files of TLS, so that a mistake in them is reported before anything connects.

        Raises: ConfigurationError: an option or a file is wrong.
        """
        if self._tls is not None:
            await self._tls.fresh_context()

    async def ssl_context(self) -> ssl.SSLContext:
        """Return the context for a new connection; changed files are read in a thread.

        Raises: ConfigurationError: as `prepare`.
        """
        assert self._tls is not None
        return await self._tls.fresh_context()

    def probe_context(self) -> ssl.SSLContext:
        """Return a context that accepts every certificate, to find out why one was rejected."""
        assert self._tls is not None
        return self._tls.probe_context()

    async def reload_tls(self) -> bool:
        """Read the TLS files again if they changed: after a failed handshake, or on request.

        Returns whether the next connection uses another context.

        Raises: ConfigurationError: as `prepare`.
        """
        return self._tls is not None and await run_in_thread(self._tls.reload)

    def tls_failure(
        self, error: Exception, *, who: str, host: str, address: str, certificate: bytes | None = None
    ) -> KafkaError:
        """Return the error for a failed handshake: permanent or transient.

        `who` names the broker; `certificate` is the rejected one (DER), if it is known.
        """
        from aiokwire.security.tls_errors import explain_tls_error, is_final  # loads late: for failures only

        assert self._tls is not None
        peer = None if certificate is None else _decoded(certificate)
        cause = explain_tls_error(error, host=host, certificate=peer, has_certificate=self._tls.has_certificate)
        if is_final(error):
            return AuthenticationFailed(f"no TLS connection to {who}: {cause}", address=address)
        return ConnectionFailed(cause, address=address, stage="tls")

    async def new_sasl_client(self, host: str) -> SaslClient:
        """Return the client of one exchange with a broker, with the current credentials.

        Raises: AuthenticationFailed: no credentials, or rejected ones; ConnectionFailed: their
        source cannot be reached now (stage "sasl").
        """
        assert self._login is not None
        return await self._login.new_client(host)

    def on_refused(self) -> None:
        """Obtain new credentials at the next login: a broker rejected these."""
        if self._login is not None:
            self._login.invalidate()

    async def close(self) -> None:
        """Drop the credentials that were obtained; a later login obtains them again."""
        if self._login is not None:
            await self._login.close()


def _new_tls(config: SecurityConfig) -> ClientTls:
    from aiokwire.security.tls import ClientTls  # loads late: SASL_PLAINTEXT does not need it

    return ClientTls(config.tls)


def _decoded(certificate: bytes) -> PeerCertificate | None:
    from aiokwire.security.certificate_info import read_der

    try:
        return read_der(certificate)
    except ssl.SSLError:
        return None
