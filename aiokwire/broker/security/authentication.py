"""The SASL logins of a connection (KIP-43, KIP-152, KIP-368; Java: `SaslServerAuthenticator`).

    first request -> SaslHandshake -> SaslAuthenticate (or bare tokens) ... -> ready
                                                                                 |
        ready <- SaslAuthenticate ... <- SaslHandshake, before the session expires

Before the login a client may send ApiVersions and the two requests of SASL, nothing else. An
expired session accepts a re-authentication only, by the same mechanism and for the same principal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import anyio

from aiokwire.broker.security.principals import ANONYMOUS, USER, Principal
from aiokwire.clock import wall_ms
from aiokwire.errors import AuthenticationFailed, ProtocolViolation
from aiokwire.protocol import ApiKey
from aiokwire.security import SaslServer

HEADER: Final = 8  # bytes of the shortest request: API, version, correlation id
BEFORE_LOGIN: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
LOGIN_REQUESTS: Final = 20  # of one connection before it is ready
REAUTHENTICATION_INTERVAL: Final = 1.0  # seconds between two of a connection, as in Kafka
# One of the texts that Kafka's clients show; it must not reveal whether the user exists.
INVALID: Final = "Authentication failed during {} due to invalid credentials with SASL mechanism {}"


class LoginRules(NamedTuple):
    """The rules that the logins at one listener share."""

    listener: str
    mechanisms: Mapping[str, Callable[[], SaslServer]]  # by name: makes the server of one exchange
    max_session: float = math.inf  # seconds; `connections.max.reauth.ms`
    failure_delay: float = 0.0  # seconds until the response to a failed login


class Authenticator:
    """The logins of one connection: the first one and the re-authentications."""

    def __init__(self, rules: LoginRules, now: Callable[[], float]) -> None:
        """`now` is the loop's clock."""
        self._rules = rules
        self._now = now
        self.principal: Principal = ANONYMOUS
        self.is_ready: bool = False
        self.reads_tokens: bool = False  # the next frame is a token without a header
        self.session_lifetime_ms: int = 0  # of the last login; 0: no limit
        self.used_token: bool = False  # the last login was one with a delegation token
        self._server: SaslServer | None = None  # of the exchange in progress
        self._mechanism = ""  # of the exchange in progress, or the last one
        self._last_mechanism = ""  # of the last successful login
        self._expires_at = math.inf  # on the loop's clock
        self._may_reauthenticate_at = -math.inf
        self._requests = 0  # before the first login

    @property
    def mechanisms(self) -> Mapping[str, Callable[[], SaslServer]]:
        """The enabled mechanisms, by name."""
        return self._rules.mechanisms

    @property
    def in_exchange(self) -> bool:
        """Whether a handshake was accepted and its exchange is not complete."""
        return self._server is not None

    @property
    def can_begin(self) -> bool:
        """Whether a SaslHandshake is legal now."""
        return self._server is None and self._now() >= self._may_reauthenticate_at

    def screen(self, frame: bytearray) -> None:
        """Check that a request may be handled in this state.

        Raises: ProtocolViolation: it may not; the connection must be closed.
        """
        if len(frame) < HEADER:
            raise ProtocolViolation(f"a frame of {len(frame)} bytes is shorter than any request")
        key = int.from_bytes(frame[:2], "big", signed=True)
        if not self.is_ready:
            self._screen_login(key)
        elif self._now() >= self._expires_at and key not in BEFORE_LOGIN:
            raise ProtocolViolation(
                f"the session of {self.principal} at listener {self._rules.listener} expired after "
                f"{self.session_lifetime_ms} ms, and the client did not authenticate again (KIP-368)"
            )

    def _screen_login(self, key: int) -> None:
        if key not in BEFORE_LOGIN:
            known = ApiKey(key).name if key in set(ApiKey) else f"unknown API {key}"
            raise ProtocolViolation(
                f"the first request was {known}, but listener {self._rules.listener} requires a SASL login: the client "
                f"needs security_protocol and sasl_mechanism ({', '.join(self._rules.mechanisms)})"
            )
        self._requests += 1
        if self._requests > LOGIN_REQUESTS:
            raise ProtocolViolation(f"{LOGIN_REQUESTS} requests at listener {self._rules.listener} without a login")

    def begin(self, mechanism: str, *, reads_tokens: bool) -> None:
        """Begin an exchange.

        Raises: AuthenticationFailed: the mechanism is not enabled.
        """
        make = self._rules.mechanisms.get(mechanism)
        if make is None:
            raise AuthenticationFailed(
                f"Unsupported SASL mechanism {mechanism}: listener {self._rules.listener} has "
                f"{', '.join(self._rules.mechanisms)}"
            )
        self._server = make()
        self._mechanism = mechanism
        self.reads_tokens = reads_tokens
        if self.is_ready:
            self._may_reauthenticate_at = self._now() + REAUTHENTICATION_INTERVAL

    async def evaluate(self, token: bytes) -> bytes:
        """Return the response to a client's token; the last one makes the connection ready.

        Raises: AuthenticationFailed: wrong credentials, after the delay of failed logins; the
        text is for the client.
        """
        server = self._server
        assert server is not None, "an exchange that has begun"
        try:
            if self.is_ready and self._mechanism != self._last_mechanism:
                raise AuthenticationFailed(
                    f"SASL mechanism '{self._mechanism}' requested by client is not supported for re-authentication of "
                    f"mechanism '{self._last_mechanism}'"
                )
            challenge = await server.evaluate_response(token)
            if server.is_complete:
                self._complete(server)
        except AuthenticationFailed:
            await anyio.sleep(self._rules.failure_delay)
            raise
        return challenge

    def _complete(self, server: SaslServer) -> None:
        principal = Principal(USER, server.authorization_id)
        if self.is_ready and principal != self.principal:
            raise AuthenticationFailed(
                "Cannot change principals during re-authentication from "
                f"{self.principal.type}.{self.principal.name}: {principal.type}.{principal.name}"
            )
        lifetime = min(self._rules.max_session, server.expires_at - wall_ms() / 1000)
        self.session_lifetime_ms = 0 if lifetime == math.inf else max(0, int(lifetime * 1000))
        self._expires_at = self._now() + max(0.0, lifetime)
        self.principal = principal
        self.used_token = getattr(server, "is_token", False)
        self._last_mechanism = self._mechanism
        self._server = None
        self.reads_tokens = False
        self.is_ready = True

    def describe_failure(self, error: AuthenticationFailed) -> str:
        """Return the text of a failed login for the operator."""
        user = self._server.authorization_id if self._server is not None else ""
        whose = f" of {user!r}" if user else ""
        what = "re-authentication" if self.is_ready else "login"
        return f"{what}{whose} by {self._mechanism} at listener {self._rules.listener} failed: {error}"
