"""Bootstrap: races the configured addresses for a metadata response.

`Client` bootstraps at its start, and again when no known broker responds (KIP-899, KIP-1102). Each
attempt resolves the host names again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from aiokwire.backoff import Backoff
from aiokwire.clock import loop_time
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KafkaError,
    ProtocolViolation,
    RequestTimedOut,
    RetriableError,
    error_for,
)
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.net import Address, Connection, Race
from aiokwire.protocol.messages import metadata

# Seconds without a response from one address or broker before the next is tried too.
STAGGER: Final = 1.0
# The interval (seconds) at which a client that finds no broker logs that it is still trying.
REPORT_INTERVAL: Final = 10.0
# More than any cluster has: choosing one of many brokers takes time on the event loop.
MOST_BROKERS: Final = 10_000
# The shortest timeout of an attempt (seconds), even near the deadline: its error has to name the cause.
SHORTEST_ATTEMPT: Final = 1.0

logger: FieldLogger = get_logger(__name__)


async def ask_metadata(
    connection: Connection, topics: Collection[str] | None, *, auto_create: bool, timeout: float
) -> metadata.MetadataResponse:
    """Send one request to one broker; `topics` None requests all.

    Raises: ConnectionFailed: the connection was lost, or the broker knows no brokers (it is just
    starting); RequestTimedOut: no response; BrokerError: the broker refuses; ProtocolViolation: the
    response names more brokers than a cluster has.
    """
    version = connection.versions.pick(metadata.MetadataRequest)
    names = None if topics is None else [metadata.MetadataRequestTopic(name=name) for name in topics]
    if names is None and version == 0:
        names = []  # version 0 has no null: its empty list asks for all
    request = metadata.MetadataRequest(topics=names, allow_auto_topic_creation=auto_create if version >= 4 else True)
    answer = await connection.request(request, version=version, timeout=timeout)
    if answer.error_code:
        raise error_for(answer.error_code, f"Metadata v{version} to {connection.who}", request="MetadataRequest")
    if not answer.brokers:
        raise ConnectionFailed(
            f"{connection.who} returned metadata without brokers", address=str(connection.address), stage="ready"
        )
    if len(answer.brokers) > MOST_BROKERS:
        raise ProtocolViolation(
            f"{connection.who} returned metadata of {len(answer.brokers)} brokers, more than {MOST_BROKERS}: "
            "is it a Kafka broker?"
        )
    return answer


class Bootstrap:
    """The race over `addresses`."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        new_connection: Callable[[Address], Connection],
        rng: random.Random,
        auto_create: bool,
        timeout: float,
    ) -> None:
        self._addresses = list(addresses)
        self._new_connection = new_connection
        self._rng = rng
        self._auto_create = auto_create
        self._timeout = timeout
        self._tried: dict[Address, Connection] = {}
        self.may_pass: bool = False  # whether a later attempt may succeed where this one failed

    async def run(
        self, topics: Collection[str] | None, limit: float = math.inf
    ) -> tuple[Connection, metadata.MetadataResponse]:
        """Return a ready connection and its response; each connection gets at most `limit` seconds.

        Raises: AuthenticationFailed: an address refuses this client, or this client refuses it, and
        none responded; ConnectionFailed: none responded; the message has each, its IPs,
        its stage and its reason.
        """
        order = self._rng.sample(self._addresses, len(self._addresses))

        async def attempt(address: Address) -> tuple[Connection, metadata.MetadataResponse]:
            connection = self._tried[address] = self._new_connection(address)
            try:
                await connection.connect(min(limit, connection.config.setup_timeout))
                timeout = min(limit, self._timeout)
                answer = await ask_metadata(connection, topics, auto_create=self._auto_create, timeout=timeout)
            except BaseException:
                connection.close()
                raise
            return connection, answer

        race = Race(
            [lambda address=address: attempt(address) for address in order],  # type: ignore[misc]  # mypy cannot type a lambda's default
            delay=STAGGER,
            expected=KafkaError,
            discard=lambda prize: prize[0].close(),
        )
        prize = await race.run()
        if prize is not None:
            return prize
        self.may_pass = any(may_pass(error) for error in race.errors.values())
        raise self._unable({order[index]: error for index, error in race.errors.items()})

    def _unable(self, errors: dict[Address, Exception]) -> KafkaError:
        refusal = next((error for error in errors.values() if isinstance(error, AuthenticationFailed)), None)
        if refusal is not None:
            return refusal
        parts = []
        stage = "connect"
        for address in self._addresses:
            error = errors.get(address)
            if error is None:
                continue
            tried = self._tried[address]
            stage = error.stage if isinstance(error, ConnectionFailed) and error.stage else "handshake"
            ips = f", resolved to {', '.join(tried.ips)}" if tried.ips else ""
            parts.append(f"{address} (stage {stage!r}{ips}): {error}")
        cause = next(iter(errors.values()), None)
        failure = ConnectionFailed(
            f"cannot connect to any of {len(self._addresses)} bootstrap address(es): {'; '.join(parts)}",
            address=",".join(map(str, self._addresses)),
            stage=stage,
            is_logged=any(isinstance(error, ConnectionFailed) and error.is_logged for error in errors.values()),
        )
        failure.__cause__ = cause
        return failure


def may_pass(error: Exception) -> bool:
    """Return whether a later attempt may succeed: brokers start, and names are registered."""
    if isinstance(error, ConnectionFailed):
        return not isinstance(error.__cause__, ValueError)  # a name that cannot be one
    return isinstance(error, (RequestTimedOut, RetriableError))


class Search:
    """The bootstrap of a starting client: repeated until a response or the timeout."""

    def __init__(
        self,
        new_bootstrap: Callable[[], Bootstrap],
        *,
        backoff: Backoff,
        pause: Callable[[float], Awaitable[None]],
        client_id: str,
    ) -> None:
        """`pause`: sleeps, at most until the client ends."""
        self._new_bootstrap = new_bootstrap
        self._backoff = backoff
        self._pause = pause
        self._client_id = client_id
        self._log = logger.bound(client_id=client_id)
        self._report_at = -math.inf  # the loop's clock: when the next line may be logged

    async def run(self, topics: Collection[str] | None, timeout: float) -> tuple[Connection, metadata.MetadataResponse]:
        """Return a ready connection and its response.

        Raises: ConnectionFailed: no address answered within `timeout` seconds (0: one attempt), or
        none ever will; AuthenticationFailed: at once, since retrying does not help.
        """
        started = loop_time()
        deadline = started + timeout
        attempts = 0
        while True:
            attempts += 1
            bootstrap = self._new_bootstrap()
            limit = max(deadline - loop_time(), SHORTEST_ATTEMPT) if timeout else math.inf
            try:
                return await bootstrap.run(topics, limit)
            except ConnectionFailed as error:
                pause = self._backoff.next()
                now = loop_time()
                if not bootstrap.may_pass:
                    raise
                if now + pause >= deadline:
                    if attempts > 1:
                        tried = f"tried {attempts} times in {now - started:.1f} s (bootstrap_timeout_ms)"
                        error.args = (f"{error}; {tried}",)
                    raise
                self._report(error, now, deadline)
            await self._pause(pause)

    def _report(self, error: ConnectionFailed, now: float, deadline: float) -> None:
        is_first = self._report_at == -math.inf
        if now >= self._report_at:
            self._report_at = now + REPORT_INTERVAL
            if is_first and error.is_logged:
                return
            self._log.warning(
                "client %r: no broker has responded yet, retrying for up to %.0f s (bootstrap_timeout_ms): %s",
                self._client_id,
                deadline - now,
                error,
            )


def same_broker(connection: Connection, answer: metadata.MetadataResponse) -> metadata.MetadataResponseBroker | None:
    """Return the broker that a bootstrap connection leads to, if it advertises the same address."""
    address = connection.address
    for broker in answer.brokers:
        if broker.port == address.port and (broker.host == address.host or broker.host in connection.ips):
            return broker
    return None


def asks_to_rebootstrap(error: KafkaError) -> bool:
    """Return whether a broker requires the client to bootstrap again (KIP-1102)."""
    return getattr(error, "code", None) == ErrorCode.REBOOTSTRAP_REQUIRED
