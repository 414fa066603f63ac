"""One connection to one broker: connect, handshake, then requests and responses until it is closed.

    connect() -> resolve -> race the addresses -> handshake -> READY    (dial, handshake)
    send() ----> encode --> transport ... transport --> decode --> future (wire, in_flight, framing)

A connection lives once; `aiokwire.cluster` replaces a closed one, with backoff. Requests are
pipelined; the broker handles one at a time and responds in order.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from aiokwire._version import __version__
from aiokwire.errors import AuthenticationFailed, ConnectionFailed, KafkaError, ProtocolViolation
from aiokwire.hooks import Hooks
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.machine import Machine
from aiokwire.net.address import Address
from aiokwire.net.dial import Tls, dial, resolve
from aiokwire.net.handshake import OLDEST, PLANS, SOFTWARE_NAME, ApiVersions, Exchange, Plan, learn_versions
from aiokwire.net.in_flight import InFlight, Receiver
from aiokwire.net.metrics import NetworkCounts
from aiokwire.net.states import TRANSITIONS, ConnectionEvent, ConnectionState
from aiokwire.net.wire import Wire
from aiokwire.protocol import Request, Response

if TYPE_CHECKING:
    from aiokwire.net.authentication import Authenticator, Renewal, Spawn
    from aiokwire.security import ClientSecurity

ResponseT = TypeVar("ResponseT", bound=Response)

logger: FieldLogger = get_logger(__name__)

# The weight of the newest response in the moving average of `latency`.
LATENCY_WEIGHT = 0.125


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionConfig:
    """The options of connections; times in seconds, sizes in bytes."""

    setup_timeout: float = 10.0  # from the lookup of the name to READY
    request_timeout: float = 30.0
    max_frame_size: int = 100 * 1024 * 1024
    write_high_water: int = 1024 * 1024  # bytes in the transport's buffer above which `drained` waits
    happy_eyeballs_delay: float = 0.25  # RFC 8305
    software_name: str = SOFTWARE_NAME
    software_version: str = __version__


class Connection:
    """One connection; see the module's docstring."""

    def __init__(
        self,
        address: Address,
        *,
        node_id: int | None = None,
        client_id: str | None = None,
        config: ConnectionConfig | None = None,
        hooks: Hooks | None = None,
        handshake: Sequence[Exchange] = (),
        may_be_old: bool = True,
        security: ClientSecurity | None = None,
        spawn: Spawn | None = None,
        rng: random.Random | None = None,
        counts: NetworkCounts | None = None,
    ) -> None:
        """`may_be_old`: a broker that closes the connection at ApiVersions may predate 0.10.

        `security`: TLS and SASL. `spawn` then starts the renewal of the session, at a time that
        `rng` spreads; it must outlive the connection. `counts`: those of the client; without, what
        this connection does is not reported.
        """
        self.address = address
        self.node_id = node_id  # None for a bootstrap address, whose node is unknown
        self.config: ConnectionConfig = config if config is not None else ConnectionConfig()
        self.versions: ApiVersions = ApiVersions({}, who=str(address))
        self.ips: list[str] = []  # the IP addresses that the name resolved to
        self.latency: float = 0.0  # seconds, a moving average over responses
        self.answers: int = 0  # received since READY
        self.throttled_until: float = 0.0  # the loop's clock: the broker throttles this client until then (KIP-219)
        self.error: KafkaError | None = None  # why it is closed; None when this side closed it without a reason
        self._client_id = client_id
        self._hooks = hooks if type(hooks) is not Hooks else None
        self._handshake = handshake
        self._security = security
        self._tls: Tls | None = None  # of the current attempt
        self._authenticator = self._new_authenticator()
        self._renewal: Renewal | None = None
        self._spawn = spawn
        self._rng = rng
        self._counts = NetworkCounts() if counts is None else counts
        self._may_be_old = may_be_old and security is None  # brokers with TLS or SASL know ApiVersions
        self._machine = Machine(f"connection to {self.who}", TRANSITIONS, ConnectionState.NEW)
        self._wire: Wire | None = None  # of the current attempt; kept when READY
        self._connecting: anyio.CancelScope | None = None  # while `connect` runs
        self._closing_by_us = False  # the next loss is not an error
        self._stage = "resolve"  # how far `connect` came: resolve, connect, handshake, sasl, ready
        self._doing = ""  # what `connect` waits for; for its timeout message

    # --- state -------------------------------------------------------------------------------------------------------

    @property
    def who(self) -> str:
        """Node and address, for messages."""
        return str(self.address) if self.node_id is None else f"node {self.node_id} at {self.address}"

    @property
    def state(self) -> ConnectionState:
        return self._machine.state

    @property
    def ready(self) -> bool:
        """Whether requests can be sent."""
        return self._machine.state is ConnectionState.READY

    @property
    def closed(self) -> bool:
        return self._machine.state in (ConnectionState.CLOSING, ConnectionState.CLOSED)

    @property
    def is_gone(self) -> bool:
        """Whether it is closed and its transport is, too."""
        return self._machine.state is ConnectionState.CLOSED

    @property
    def in_flight(self) -> int:
        """The number of requests without a response."""
        return 0 if self._wire is None else len(self._wire)

    @property
    def last_used(self) -> float:
        """The loop's time of the last request or response."""
        return 0.0 if self._wire is None else self._wire.last_used

    @property
    def write_paused(self) -> bool:
        """Whether `drained` would wait."""
        return self._wire is not None and self._wire.paused

    def __repr__(self) -> str:
        return f"<Connection {self.who} {self.state.name}, {self.in_flight} in flight>"

    # --- connect -----------------------------------------------------------------------------------------------------

    async def connect(self, timeout: float | None = None) -> None:
        """Resolve, connect, shake hands; `timeout` (seconds) replaces `setup_timeout`.

        Raises: ConnectionFailed: with its stage and the error of each address;
        AuthenticationFailed: one side refuses the other's identity, by TLS or SASL;
        ProtocolViolation: the port does not speak Kafka's protocol; BrokerError: the broker refuses
        the handshake.
        """
        self._machine.fire(ConnectionEvent.CONNECT)
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = self.config.setup_timeout if timeout is None else timeout
        with anyio.CancelScope(deadline=started + limit) as scope:
            self._connecting = scope
            try:
                await self._establish(
                    limit + 1.0
                )  # the scope ends it, not a request's own deadline: it knows the stage
            except KafkaError as error:
                self.error = error
                self._counts.failed(refused=isinstance(error, AuthenticationFailed))
                raise
            finally:
                self._connecting = None
                if not self.ready:
                    self._abandon()
        if scope.cancelled_caught:
            elapsed = loop.time() - started
            in_time = loop.time() < scope.deadline  # not by `elapsed`, which rounds otherwise
            reason = "closed meanwhile" if in_time else f"no success in {elapsed:.3f} s"
            tried = f" (resolved to {', '.join(self.ips)})" if self.ips else ""
            self.error = self._failure(f"{self.who}{tried}: {reason}, while {self._doing}")
            self._counts.failed(refused=False)
            raise self.error
        self._counts.connected()
        if self._hooks is not None:
            self._call_hook("on_connect", self.node_id, str(self.address), loop.time() - started)

    async def _establish(self, timeout: float) -> None:
        self._doing = "resolving the name"
        self.ips = await resolve(self.address)
        hung_up: list[Plan] = []
        reason: ConnectionFailed | None = None
        for plan in PLANS if self._may_be_old else PLANS[:-1]:
            wire, ip = await self._open(timeout)
            self._machine.fire(ConnectionEvent.ESTABLISHED)
            self._stage = "handshake"
            self._doing = f"waiting for an answer to {plan} from {ip}"
            try:
                versions = await self._learn(wire, plan, timeout)
            except ConnectionFailed as error:
                if isinstance(wire.error, AuthenticationFailed):  # the broker refused the certificate late (TLS 1.3)
                    raise wire.error from error
                self._machine.fire(ConnectionEvent.REFUSED)
                hung_up.append(plan)
                reason = error
                continue
            if versions.assumed:
                wire, versions = await self._ask_once_more(wire, versions, timeout)
            await self._run_exchanges(wire, versions, ip, timeout)
            self._become_ready(wire, versions)
            return
        raise self._failure(
            f"{self.who} ({ip}) takes connections but hangs up on {', '.join(map(str, hung_up))}: {self._suspicion()}"
        ) from reason

    def _suspicion(self) -> str:
        """Return the kinds of ports that may hang up on ApiVersions, for the error."""
        if self._security is None or not self._security.uses_tls:
            likely = "a TLS port (set security_protocol=SSL or SASL_SSL)"
        elif self._security.has_certificate:
            likely = "a broker that refuses the client's certificate (its log has the reason)"
        else:
            likely = "a broker that requires a client certificate (set ssl_keystore_location)"
        return f"{likely}, a proxy without a broker behind it, or no Kafka at all?"

    async def _open(self, timeout: float) -> tuple[Wire, str]:
        """Connect a wire; with TLS, once more if its files have changed since they were read."""
        self._stage = "connect"
        security = self._security
        self._doing = f"connecting to {', '.join(self.ips)}"
        if security is None or not security.uses_tls:
            return await self._dial()
        self._doing += ", with a TLS handshake"
        context = await security.ssl_context()
        self._tls = Tls(context, timeout, self._explain_tls, security.probe_context, security.tls_sessions)
        try:
            return await self._dial()
        except AuthenticationFailed:
            if not await security.reload_tls():
                raise
        self._tls = self._tls._replace(context=await security.ssl_context())
        return await self._dial()

    async def _dial(self) -> tuple[Wire, str]:
        delay = self.config.happy_eyeballs_delay
        wire, ip = await dial(self.address, self.ips, self._new_wire, delay=delay, who=self.who, tls=self._tls)
        self._wire = wire
        return wire, ip

    def _explain_tls(self, error: Exception, certificate: bytes | None = None) -> KafkaError:
        assert self._security is not None
        host, address = self.address.host, str(self.address)
        return self._security.tls_failure(error, who=self.who, host=host, address=address, certificate=certificate)

    def _new_authenticator(self) -> Authenticator | None:
        security = self._security
        if security is None or not security.uses_sasl:
            return None
        from aiokwire.net.authentication import Authenticator  # loaded late: most connections need none

        host, address = self.address.host, str(self.address)
        return Authenticator(security, host=host, who=self.who, address=address)

    async def _run_exchanges(self, wire: Wire, versions: ApiVersions, ip: str, timeout: float) -> None:
        for exchange in self._handshake:
            self._doing = f"waiting for {exchange.name} with {ip}"
            await exchange.run(wire, versions, timeout)
        if self._authenticator is not None:
            self._stage = "sasl"
            self._doing = f"waiting for {self._authenticator.name} with {ip}"
            await self._authenticator.run(wire, versions, timeout)
            self._counts.logged_in()

    async def _learn(self, wire: Wire, plan: Plan, timeout: float) -> ApiVersions:
        return await learn_versions(
            wire,
            plan,
            who=self.who,
            timeout=timeout,
            software_name=self.config.software_name,
            software_version=self.config.software_version,
        )

    async def _ask_once_more(self, old: Wire, assumed: ApiVersions, timeout: float) -> tuple[Wire, ApiVersions]:
        """Repeat ApiVersions: two lost connections in a row may have made a newer broker look old.

        With the oldest versions, a newer broker would drop headers, a producer lose idempotence.
        """
        self._doing = f"making sure that {self.who} does not know {OLDEST}"
        try:
            wire, _ = await self._dial()
            versions = await self._learn(wire, OLDEST, timeout)
        except ConnectionFailed as error:
            if error.stage == "connect":
                old.abort()
                raise
            self._wire = old
            return old, assumed
        except BaseException:
            old.abort()
            raise
        old.abort()
        return wire, versions

    def _new_wire(self) -> Wire:
        return Wire(
            who=self.who,
            client_id=self._client_id,
            max_frame_size=self.config.max_frame_size,
            write_high_water=self.config.write_high_water,
            stall_timeout=self.config.request_timeout,
            explain_tls=None if self._tls is None else self._explain_tls,
        )

    def _become_ready(self, wire: Wire, versions: ApiVersions) -> None:
        if wire.error is not None:  # in the turn of the loop that received the last response
            raise wire.error
        self.versions = versions
        wire.on_fail = self._on_fail
        wire.on_gone = self._on_gone
        wire.on_answer = self._on_answer
        wire.on_sent = self._on_sent
        wire.explain_loss = self._explain_loss
        self._stage = "ready"
        self._machine.fire(ConnectionEvent.ACCEPTED)
        if self._authenticator is not None and self._authenticator.session_lifetime > 0 and self._spawn is not None:
            self._renew_sessions(self._authenticator, wire, versions, self._spawn)

    def _renew_sessions(self, authenticator: Authenticator, wire: Wire, versions: ApiVersions, spawn: Spawn) -> None:
        from aiokwire.net.authentication import Renewal

        self._renewal = Renewal(
            authenticator,
            wire,
            versions,
            spawn=spawn,
            rng=self._rng if self._rng is not None else random.Random(),
            timeout=self.config.request_timeout,
            who=self.who,
            client_id=self._client_id,
            on_end=self._counts.renewed,
        )
        self._renewal.start()

    def _abandon(self) -> None:
        """Leave nothing open when `connect` fails or is cancelled."""
        if self._machine.can(ConnectionEvent.CLOSE):
            self._machine.fire(ConnectionEvent.CLOSE)
        wire = self._wire
        if wire is not None:
            wire.on_gone = self._on_gone
            wire.fail(self._failure("the connection attempt was given up"))
        if self.state is ConnectionState.CLOSING and (wire is None or wire.gone):
            self._on_gone()

    def _failure(self, message: str) -> ConnectionFailed:
        return ConnectionFailed(message, address=str(self.address), stage=self._stage)

    # --- requests ----------------------------------------------------------------------------------------------------

    def send(
        self,
        request: Request[ResponseT],
        *,
        version: int | None = None,
        timeout: float | None = None,
        expect_response: bool = True,
    ) -> asyncio.Future[ResponseT]:
        """Write a request now, and return a future of its response.

        When `timeout` (seconds, default: the configured request timeout) expires, the connection is
        closed: a broker responds in order. To wait less, cancel the future: the request keeps its
        place. Without `expect_response` the future is already done, with None.

        Raises: ConnectionFailed: the connection is not READY; UnsupportedVersion: no version fits.
        """
        return self._ready_wire().send(
            request,
            self.versions.pick(type(request)) if version is None else version,
            timeout=self.config.request_timeout if timeout is None else timeout,
            expect_response=expect_response,
        )

    def send_for(self, receiver: Receiver, request: Request[Any], *, version: int, timeout: float) -> None:
        """Write a request now; `receiver` gets its response or its error.

        Raises: as `send`; `receiver` is not called then.
        """
        self._ready_wire().send_for(receiver, request, version, timeout=timeout)

    def _ready_wire(self) -> Wire:
        wire = self._wire
        if wire is None or self._machine.state is not ConnectionState.READY:
            raise self._not_ready()
        return wire

    async def request(
        self, request: Request[ResponseT], *, timeout: float | None = None, version: int | None = None
    ) -> ResponseT:
        """Send a request and wait for its response.

        Raises: ConnectionFailed: the connection was lost or is not READY; RequestTimedOut: no
        response in time; ProtocolViolation: the response is unreadable; UnsupportedVersion: no
        version fits.
        """
        return await self.send(request, timeout=timeout, version=version)

    async def drained(self) -> None:
        """Wait until the transport's buffer has room.

        Raises: ConnectionFailed: the connection was lost.
        """
        if self._wire is None:
            raise self._not_ready()
        await self._wire.drained()

    # --- close -------------------------------------------------------------------------------------------------------

    def close(self, error: KafkaError | None = None) -> None:
        """Close; requests in flight fail. Without `error` the transport first writes its buffer."""
        if self.closed:
            return
        if self._connecting is not None:
            self._connecting.cancel()
            return
        if self.state is ConnectionState.NEW:
            self._machine.fire(ConnectionEvent.CLOSE)
            return
        if self._wire is not None:
            reason = error if error is not None else ConnectionFailed("this side closed the connection", stage="ready")
            self._closing_by_us = error is None
            self._wire.fail(reason, flush=error is None)

    def abort(self) -> None:
        """Close without writing the rest of the buffer."""
        self.close()
        if self._wire is not None:
            self._wire.abort()

    async def wait_closed(self) -> None:
        """Wait for the transport to close, with a deadline: a peer that does not read blocks it."""
        if self._wire is not None:
            await self._wire.wait_gone()

    # --- called by the wire ------------------------------------------------------------------------------------------

    def _on_fail(self, error: KafkaError) -> None:
        self.error = None if self._closing_by_us else error
        if self._renewal is not None:
            self._renewal.stop()
        self._machine.fire(ConnectionEvent.CLOSE)
        self._counts.closed()
        logger.debug("%s: closed: %s", self.who, error)
        if self._hooks is not None:
            self._call_hook("on_disconnect", self.node_id, str(self.address), self.error)

    def _explain_loss(self) -> str:
        """Return the hint for a peer that hangs up at the first request: its port requires SASL."""
        if self.answers or self._authenticator is not None:
            return ""
        protocol = "SASL_PLAINTEXT" if self._tls is None else "SASL_SSL"
        return (
            f" without any response: if this repeats, the port may require a login (set security_protocol={protocol} "
            "and sasl_mechanism)"
        )

    def _on_gone(self) -> None:
        if self._machine.can(ConnectionEvent.GONE):
            self._machine.fire(ConnectionEvent.GONE)

    def _on_sent(self, api: str, version: int, size: int) -> None:
        self._counts.sent(size)
        if self._hooks is not None:
            self._call_hook("on_request_sent", self.node_id, api, version, size)

    def _on_answer(self, entry: InFlight, size: int, elapsed: float, answer: Any) -> None:
        self.answers += 1
        self.latency += (elapsed - self.latency) * (LATENCY_WEIGHT if self.answers > 1 else 1.0)
        self._counts.answered(self.node_id, entry.api, size, elapsed)
        throttle = getattr(answer, "throttle_time_ms", 0)
        if throttle > 0:
            self._throttle(entry.api, throttle / 1000)
        if self._hooks is not None:
            self._call_hook("on_response_received", self.node_id, entry.api, entry.version, size, elapsed)

    def _throttle(self, api: str, seconds: float) -> None:
        self._counts.throttled(self.node_id, api, seconds)
        until = asyncio.get_running_loop().time() + seconds
        self.throttled_until = max(self.throttled_until, until)
        if self._hooks is not None:
            self._call_hook("on_throttle", -1 if self.node_id is None else self.node_id, seconds)

    def _call_hook(self, name: str, *args: object) -> None:
        """Call a hook; log its exceptions."""
        try:
            getattr(self._hooks, name)(*args)
        except Exception:
            logger.exception("hook %s of %r raised", name, self._hooks)

    def _not_ready(self) -> KafkaError:
        if isinstance(self.error, ProtocolViolation):
            return ProtocolViolation(f"{self.who} is closed: {self.error}")
        because = f": {self.error}" if self.error is not None else ""
        return self._failure(f"{self.who} is {self.state.name}, not READY{because}")
