"""Login of a connection by SASL: the exchange after ApiVersions, and its renewal (KIP-368).

    connect: SaslHandshake --> SaslAuthenticate ... --> READY
    renewal: new credentials, then the same behind the requests in flight; later requests are held

Brokers before 1.0 have no SaslAuthenticate: after SaslHandshake v0 the tokens are bare frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeAlias, TypeVar

import anyio

from aiokwire.error_codes import ErrorCode
from aiokwire.errors import AuthenticationFailed, ClosedError, ConnectionFailed, KafkaError, error_for
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.net.handshake import ApiVersions
from aiokwire.net.wire import Wire
from aiokwire.protocol import ApiKey, Request, Response
from aiokwire.protocol.messages import sasl_authenticate, sasl_handshake
from aiokwire.security import SaslClient, SecretBytes

ResponseT = TypeVar("ResponseT", bound=Response)
# Starts a coroutine function, with a `name`, in the task group that owns the connection.
Spawn: TypeAlias = Callable[..., object]

logger: FieldLogger = get_logger(__name__)

# A session is renewed this share of its lifetime before its end, at random: connections must not renew all at once.
RENEW_BEFORE: Final = (0.05, 0.15)
# At least as many seconds before, but not before its half: the broker closes a connection if it reaches a request that
# was sent before the renewal after the end of the session, as a busy broker may.
MARGIN: Final = 5.0
# A broker refuses a second renewal within one second (Java: MIN_REAUTH_INTERVAL).
LEAST_USE: Final = 1.1
# The share of the lifetime after which requests wait for the renewal, which a blocked loop may delay.
HOLD_FROM: Final = 0.97
# The shortest pause (seconds) before the credentials are requested again.
RETRY_PAUSE: Final = 1.0

_PASSWORD_REMEDY: Final = "check sasl_plain_username and sasl_plain_password"
_REMEDIES: Final = {
    "PLAIN": _PASSWORD_REMEDY,
    "SCRAM-SHA-256": f"{_PASSWORD_REMEDY}, and that the user has SCRAM-SHA-256 credentials",
    "SCRAM-SHA-512": f"{_PASSWORD_REMEDY}, and that the user has SCRAM-SHA-512 credentials",
    "OAUTHBEARER": "check the token's issuer, audience and expiry, and the clocks of both machines",
    "GSSAPI": "check the ticket, sasl_kerberos_service_name and the host name that the broker advertises",
}


def margin_of(lifetime: float, rng: random.Random) -> float:
    """Return how many seconds before its end a session of `lifetime` seconds is renewed."""
    margin = max(lifetime * rng.uniform(*RENEW_BEFORE), min(MARGIN, lifetime / 2) * rng.uniform(0.8, 1.0))
    return min(margin, max(lifetime - LEAST_USE, lifetime * RENEW_BEFORE[0]))


class Credentials(Protocol):
    """Supplies exchanges with the current credentials (`ClientSecurity`)."""

    async def new_sasl_client(self, host: str) -> SaslClient:
        """Return the client of one exchange."""
        ...

    def on_refused(self) -> None:
        """Record that a broker refused the credentials."""
        ...


class Authenticator:
    """The SASL exchanges of one connection."""

    name: str = "the SASL login"

    def __init__(self, credentials: Credentials, *, host: str, who: str, address: str) -> None:
        """`host`: of the broker, for mechanisms that name it; `who`, `address`: for messages."""
        self._credentials = credentials
        self._host = host
        self._who = who
        self._address = address
        # The loop's clock, when the last token was sent: before the broker's session begins.
        self.logged_in_at: float = 0.0
        self.session_lifetime: float = 0.0  # seconds, of the last exchange; 0: unlimited

    async def run(self, wire: Wire, versions: ApiVersions, timeout: float) -> None:
        """Log in; each response may take `timeout` seconds.

        Raises: AuthenticationFailed: refused, or the broker does not offer the mechanism;
        ConnectionFailed: the connection was lost, or no credentials could be obtained now.
        """
        client, token = await self.begin()
        await self.exchange(client, token, wire, versions, timeout)

    async def begin(self) -> tuple[SaslClient, bytes]:
        """Return the client of another exchange with the current credentials, and its first token.

        Raises: as `run`, except for the connection's errors.
        """
        with self._explained():
            client = await self._credentials.new_sasl_client(self._host)
            return client, SecretBytes(await client.evaluate_challenge(b""))

    async def exchange(
        self, client: SaslClient, token: bytes, wire: Wire, versions: ApiVersions, timeout: float
    ) -> None:
        """Run an exchange that has begun. Requests that the wire holds stay behind it.

        Raises: as `run`.
        """
        is_modern = versions.range(ApiKey.SASL_AUTHENTICATE) is not None
        await self._agree(client.mechanism, wire, versions, timeout, is_modern=is_modern)
        while True:
            if is_modern:
                challenge = await self._send(client, token, wire, versions, timeout)
            else:
                challenge = await self._send_bare(client.mechanism, token, wire, timeout)
            if client.is_complete:
                return
            with self._explained():
                token = SecretBytes(await client.evaluate_challenge(challenge))
            if client.is_complete and not token:
                return

    async def _agree(
        self, mechanism: str, wire: Wire, versions: ApiVersions, timeout: float, *, is_modern: bool
    ) -> None:
        """Agree on the mechanism.

        Raises: AuthenticationFailed: the broker does not offer it, or no SASL at this port.
        """
        if versions.range(ApiKey.SASL_HANDSHAKE) is None:
            raise self._refused("it offers no SASL at this port: set security_protocol to PLAINTEXT or SSL")
        request = sasl_handshake.SaslHandshakeRequest(mechanism=mechanism)
        answer = await self._ask(wire, request, int(is_modern), timeout)
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            offered = ", ".join(sorted(answer.mechanisms)) or "none"
            raise self._refused(f"it does not offer {mechanism}, but {offered}: set sasl_mechanism to one of them")
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise self._refused(
                "this port expects no SASL login: set security_protocol to PLAINTEXT or SSL, or use the port of a "
                "SASL listener"
            )
        if answer.error_code:
            raise error_for(answer.error_code, f"SaslHandshake to {self._who}", request="SaslHandshakeRequest")

    async def _send(self, client: SaslClient, token: bytes, wire: Wire, versions: ApiVersions, timeout: float) -> bytes:
        request = sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token)
        version = versions.pick(sasl_authenticate.SaslAuthenticateRequest)
        self.logged_in_at = asyncio.get_running_loop().time()
        answer = await self._ask(wire, request, version, timeout)
        if answer.error_code in (ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.ILLEGAL_SASL_STATE):
            reason = getattr(client, "error", "") or answer.error_message or ErrorCode.of(answer.error_code).description
            remedy = _REMEDIES.get(client.mechanism, "check the credentials")
            self._credentials.on_refused()
            raise self._refused(f"the login by {client.mechanism} failed: {reason}; {remedy}")
        if answer.error_code:
            raise error_for(answer.error_code, f"SaslAuthenticate to {self._who}", request="SaslAuthenticateRequest")
        self.session_lifetime = answer.session_lifetime_ms / 1000
        return bytes(answer.auth_bytes)

    async def _ask(self, wire: Wire, request: Request[ResponseT], version: int, timeout: float) -> ResponseT:
        answer: asyncio.Future[ResponseT] = asyncio.get_running_loop().create_future()
        wire.send_for(answer, request, version, timeout=timeout, past_hold=True)
        return await answer

    async def _send_bare(self, mechanism: str, token: bytes, wire: Wire, timeout: float) -> bytes:
        """Raises: AuthenticationFailed: these brokers refuse by closing the connection."""
        try:
            return bytes(await wire.send_token(token, timeout=timeout))
        except ConnectionFailed as error:
            remedy = _REMEDIES.get(mechanism, "check the credentials")
            self._credentials.on_refused()
            raise self._refused(
                f"it closed the connection during the login by {mechanism}, as brokers before 1.0 do when they refuse "
                f"the credentials; {remedy}"
            ) from error

    def _refused(self, reason: str) -> AuthenticationFailed:
        return AuthenticationFailed(f"{self._who}: {reason}", address=self._address)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Add the broker's name and address to the errors of a mechanism and of its credentials."""
        try:
            yield
        except AuthenticationFailed as error:
            raise AuthenticationFailed(self._located(error), address=self._address) from error
        except ConnectionFailed as error:
            text, logged = self._located(error), error.is_logged
            raise ConnectionFailed(text, address=self._address, stage="sasl", is_logged=logged) from error
        except KafkaError:
            raise
        except Exception as error:  # of a provider or a mechanism that the user wrote
            text = f"{self._who}: the credentials could not be used: {error!r}"
            raise ConnectionFailed(text, address=self._address, stage="sasl") from error

    def _located(self, error: KafkaError) -> str:
        return str(error) if self._who in str(error) else f"{self._who}: {error}"


class Renewal:
    """Renews the session of a READY connection, each time before the broker ends it.

    The connection stays open, and nothing fails: requests in flight come first, later ones follow.
    A broker refuses another principal; then the connection closes, and the next one logs in.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        wire: Wire,
        versions: ApiVersions,
        *,
        spawn: Spawn,
        rng: random.Random,
        timeout: float,
        who: str,
        client_id: str | None,
        on_end: Callable[..., None],
    ) -> None:
        """`on_end(accepted=...)`: a renewal ended."""
        self._authenticator = authenticator
        self._wire = wire
        self._versions = versions
        self._spawn = spawn
        self._rng = rng
        self._timeout = timeout  # seconds for each response
        self._who = who
        self._client_id = client_id
        self._log = logger.bound(client_id=client_id)
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._expires_at = 0.0  # the loop's clock
        self._timer: asyncio.TimerHandle | None = None
        self._scope: anyio.CancelScope | None = None  # while a renewal runs
        self._is_stopped = False
        self._has_warned = False  # about credentials that cannot be obtained

    def start(self) -> None:
        """Start the timer of the session that the authenticator has just opened."""
        lifetime = self._authenticator.session_lifetime
        if lifetime <= 0 or self._is_stopped:
            return
        started = self._authenticator.logged_in_at
        self._expires_at = started + lifetime
        self._wire.hold_from(started + lifetime * HOLD_FROM)
        self._wake_at(started + lifetime - margin_of(lifetime, self._rng))

    def stop(self) -> None:
        """End it: the connection is closed."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._scope is not None:
            self._scope.cancel()

    def _wake_at(self, at: float) -> None:
        self._timer = self._loop.call_at(at, self._begin)

    def _begin(self) -> None:
        with contextlib.suppress(ClosedError):  # the client has ended, and closes its connections
            self._spawn(self._run, name=f"log in to {self._who} again")

    async def _run(self) -> None:
        if self._is_stopped:
            return
        with anyio.CancelScope() as self._scope:
            try:
                client, token = await self._authenticator.begin()
            except KafkaError as error:
                self._on_no_credentials(error)
            else:
                await self._exchange(client, token)
        self._scope = None

    def _on_no_credentials(self, error: KafkaError) -> None:
        """Retry until the session ends, if the error is transient."""
        left = self._expires_at - self._loop.time()
        if left <= 0 or not isinstance(error, ConnectionFailed):
            self._give_up(error)
            return
        if not self._has_warned:
            self._has_warned = True
            text = "client %r: no credentials to renew the session with %s, which ends in %.0f s; retrying: %s"
            self._log.warning(text, self._client_id, self._who, left, error)
        self._wake_at(self._loop.time() + min(max(RETRY_PAUSE, left / 4), left))

    async def _exchange(self, client: SaslClient, token: bytes) -> None:
        wire = self._wire
        in_flight = max(0.0, wire.latest_deadline() - self._loop.time())  # the broker responds to these first
        wire.hold()
        try:
            await self._authenticator.exchange(client, token, wire, self._versions, in_flight + self._timeout)
        except KafkaError as error:
            self._give_up(error)
        else:  # a cancelled renewal releases nothing: its owner closes the connection
            self._has_warned = False
            self._on_end(accepted=True)
            wire.release()
            self.start()

    def _give_up(self, error: KafkaError) -> None:
        if self._wire.error is None:  # else the connection was lost, and its owner reports it
            text = "client %r: closing the connection to %s, the next one logs in: its session was not renewed: %s"
            self._log.warning(text, self._client_id, self._who, error)
            self._on_end(accepted=False)
            self._wire.fail(error)
