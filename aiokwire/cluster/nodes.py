"""A client's connections: at most one per node and lane, made on demand, retried with backoff.

Requests that wait at the broker (fetches, joins) have lanes of their own, since a broker handles
the requests of a connection one at a time. A connection attempt runs in the client's task group,
and all callers wait for the same attempt; a caller that is cancelled does not end it. While a node
is unreachable, one lane tries for all. Outages are logged here, once per node.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVarTuple

import anyio

from aiokwire.backoff import Backoff
from aiokwire.clock import loop_time
from aiokwire.cluster.config import ClientConfig
from aiokwire.cluster.snapshot import Broker
from aiokwire.errors import (
    AuthenticationFailed,
    BrokerError,
    ClosedError,
    ConnectionFailed,
    KafkaError,
    RequestTimedOut,
)
from aiokwire.hooks import Hooks
from aiokwire.log_fields import FieldLogger, get_logger
from aiokwire.net import Address, Connection, NetworkCounts

if TYPE_CHECKING:
    from aiokwire.security import ClientSecurity

Args = TypeVarTuple("Args")

logger: FieldLogger = get_logger(__name__)

MAIN = "main"
COORDINATOR = "coordinator"
JOIN = "join"  # the response to a JoinGroup or SyncGroup waits for the other members

# Stages whose failure affects every lane of the node; later stages concern the one connection.
UNREACHED = frozenset({"resolve", "connect"})

# Connections lost in a row without a response before a WARNING is logged: single losses are restarts.
UNANSWERED_LOGGED = 3

# The order in which nodes receive requests for any node.
CONNECTED = 0
UNCONNECTED = 1
LATE = 2  # missed a deadline, and has not been reconnected yet
BACKING_OFF = 3

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def failure_level(error: KafkaError, otherwise: int = logging.INFO) -> int:
    """Return the level at which callers log that a request failed.

    DEBUG for a connection failure, which `Nodes` logs once per broker outage; else `otherwise`.
    """
    cause = error.__cause__ if isinstance(error, RequestTimedOut) else error
    is_logged = isinstance(cause, AuthenticationFailed) or (
        isinstance(cause, ConnectionFailed) and (cause.stage != "resolve" or bool(cause.address))
    )
    return logging.DEBUG if is_logged else otherwise


def retry_level(error: KafkaError | str, backoff: Backoff) -> int:
    """Return the level at which an attempt that will be repeated is logged.

    INFO for some attempts (`Backoff.is_worth_logging`), but not for the first if a metadata refresh
    is the remedy (another leader), which is the normal path; else DEBUG, also for outages.
    """
    is_normal = isinstance(error, BrokerError) and error.code.refresh_metadata and backoff.attempts == 1
    if is_normal or not backoff.is_worth_logging:
        return logging.DEBUG
    return failure_level(error) if isinstance(error, KafkaError) else logging.INFO


class Spawn(Protocol):
    """Starts a background task (`Supervisor.spawn`)."""

    def __call__(
        self, func: Callable[[*Args], Coroutine[Any, Any, object]], /, *args: *Args, name: str | None = None
    ) -> None: ...


class Slot:
    """The connection of one node and lane, and the backoff between attempts."""

    __slots__ = (
        "backoff",
        "connection",
        "failures",
        "last_error",
        "not_before",
        "revived",
        "settled",
        "unanswered",
        "unreached",
    )

    def __init__(self, backoff: Backoff) -> None:
        self.connection: Connection | None = None  # ready, or closed and not yet replaced
        self.backoff: Backoff = backoff
        self.failures: int = 0  # attempts that failed in a row
        self.unanswered: int = 0  # connections lost in a row that had not received a response
        self.not_before: float = 0.0  # the loop's clock: the next attempt waits until then
        self.last_error: KafkaError | None = None
        # Whether the last attempt, of this or another lane, failed for a reason that affects every lane.
        self.unreached: bool = False
        self.revived: anyio.Event = anyio.Event()  # set, and replaced, when the node is reachable: the pause ends
        self.settled: anyio.Event | None = None  # set when the current attempt ends; None without one

    @property
    def ready(self) -> Connection | None:
        connection = self.connection
        return connection if connection is not None and connection.ready else None

    @property
    def is_late(self) -> bool:
        """Whether the last connection was closed after a timeout and has not been replaced."""
        error = self.last_error if self.connection is None else self.connection.error
        return isinstance(error, RequestTimedOut)

    def blame(self, other: Slot) -> None:
        """Count another lane's failure to reach the node as this lane's."""
        self.failures = max(self.failures, other.failures)
        self.not_before = max(self.not_before, other.not_before)
        self.backoff.attempts = max(self.backoff.attempts, other.backoff.attempts)
        self.last_error = other.last_error
        self.unreached = True

    def forgive(self) -> None:
        """Forget earlier failures and end the pause: the node is reachable."""
        self.failures = 0
        self.unreached = False
        self.not_before = 0.0
        self.backoff.reset()
        self.revived.set()
        self.revived = anyio.Event()


class Nodes:
    """Addresses of nodes, and the connections to them."""

    def __init__(
        self,
        config: ClientConfig,
        *,
        spawn: Spawn,
        rng: random.Random,
        hooks: Hooks | None = None,
        security: ClientSecurity | None = None,
    ) -> None:
        self._config = config
        self._log = logger.bound(client_id=config.client_id)
        self._connection_config = config.connection
        self._spawn = spawn
        self._rng = rng
        self._hooks = hooks
        self._security = security
        self._addresses: dict[int, Address] = {}
        self._slots: dict[tuple[int, str], Slot] = {}
        self._connections: list[Connection] = []  # all that are not closed, also those without a slot
        self.counts: NetworkCounts = NetworkCounts()
        self._outages: dict[int, float] = {}  # unreachable node to the loop's time of the first failed attempt
        self._refused_by = ""  # the node whose refusal of a login was logged; empty after a success
        self._is_modern = False  # a broker answered ApiVersions: one that now closes the connection is failing, not old
        self._remote_bootstrap = any(address.host not in LOOPBACK for address in config.addresses)

    # --- addresses ---------------------------------------------------------------------------------------------------

    def follow(self, brokers: Mapping[int, Broker]) -> None:
        """Adopt the addresses of a new snapshot; close connections to addresses that are gone."""
        known = {node_id: broker.address for node_id, broker in brokers.items()}
        before, self._addresses = self._addresses, known
        for node_id in self._outages.keys() - known.keys():
            del self._outages[node_id]
            self._log.info(
                "client %r: unreachable node %d left the cluster",
                self._config.client_id,
                node_id,
                extra={"node_id": node_id},
            )
        for (node_id, lane), slot in list(self._slots.items()):
            if slot.settled is not None:
                continue  # checked again when the attempt ends
            at = slot.connection.address if slot.connection is not None else before.get(node_id)
            address = known.get(node_id)
            unused = slot.ready is None or slot.ready.in_flight == 0
            if address != at and (address is not None or unused):
                self._drop(node_id, lane, slot)

    def learn(self, node_id: int, address: Address) -> None:
        """Note the address of a node that another response named (a coordinator)."""
        if node_id not in self._addresses:
            self._addresses[node_id] = address

    @property
    def addresses(self) -> dict[int, Address]:
        """The known addresses; from any thread."""
        return dict(self._addresses)

    @property
    def open_connections(self) -> list[Connection]:
        """The connections that can be used; from any thread."""
        return [one for one in self._connections if one.ready]

    def address(self, node_id: int) -> Address | None:
        """Return the address of a node; None if it is unknown."""
        return self._addresses.get(node_id)

    def is_unreachable(self, node_id: int | None) -> bool:
        """Whether an outage of the node has been logged, and has not ended."""
        return node_id in self._outages

    def _drop(self, node_id: int, lane: str, slot: Slot) -> None:
        del self._slots[node_id, lane]
        slot.forgive()  # callers in a pause look up the new address
        if slot.connection is not None:
            slot.connection.close()

    # --- connections -------------------------------------------------------------------------------------------------

    def ready(self, node_id: int, lane: str = MAIN) -> Connection | None:
        """The ready connection of a lane, if there is one now."""
        slot = self._slots.get((node_id, lane))
        return None if slot is None else slot.ready

    async def connection(self, node_id: int, lane: str, timeout: float) -> Connection:
        """Return the ready connection of a lane; connect, after the backoff, if it has none.

        Raises: ConnectionFailed: the attempt failed or timed out, or the node is unknown;
        AuthenticationFailed: TLS or SASL refused it; ClosedError: the client was closed.
        """
        ready = self.ready(node_id, lane)
        if ready is not None:
            return ready
        deadline = loop_time() + timeout
        slot = self._slot(node_id, lane)
        if slot.settled is None:
            self._note_loss(slot)
            await self._pause(slot, node_id, deadline)
            await self._let_another_try(node_id, timeout, deadline)
            slot = self._slot(node_id, lane)  # meanwhile another caller may have connected, or the node may have moved
        if slot.ready is not None:
            return slot.ready
        if slot.settled is None:
            self._begin(node_id, lane, slot)
        settled = slot.settled
        assert settled is not None
        with anyio.CancelScope(deadline=deadline):
            await settled.wait()
        if slot.ready is not None:
            return slot.ready
        raise self._unreachable(node_id, slot, timeout, in_time=settled.is_set())

    def _slot(self, node_id: int, lane: str) -> Slot:
        slot = self._slots.get((node_id, lane))
        in_use = slot is not None and (slot.ready is not None or slot.settled is not None)
        if node_id not in self._addresses and not in_use:  # a slot in use outlives its node's place in the metadata
            raise ConnectionFailed(
                f"node {node_id} is not in the metadata (known: {sorted(self._addresses)})", stage="resolve"
            )
        if slot is None:
            slot = self._slots[node_id, lane] = Slot(self._new_backoff())
        return slot

    def _new_backoff(self) -> Backoff:
        return self._config.new_reconnect_backoff(self._rng)

    def _note_loss(self, slot: Slot) -> None:
        """Handle a lost connection: without any response a failure, otherwise replaced at once."""
        lost = slot.connection
        if lost is None:
            return
        slot.connection = None
        slot.last_error = lost.error
        if lost.answers == 0 and lost.error is not None:
            slot.failures += 1
            slot.not_before = loop_time() + slot.backoff.next()
            slot.unanswered += 1
            if slot.unanswered == UNANSWERED_LOGGED:
                text = "client %r: %s closed %d connections in a row without a response, reconnecting with backoff: %s"
                self._log_of(lost).warning(text, self._config.client_id, lost.who, slot.unanswered, lost.error)
        else:
            slot.failures = slot.unanswered = 0
            slot.backoff.reset()

    async def _pause(self, slot: Slot, node_id: int, deadline: float) -> None:
        wait = slot.not_before - loop_time()
        if wait <= 0:
            return
        if slot.not_before > deadline:
            raise self._unreachable(node_id, slot, deadline - loop_time(), in_time=True)
        with anyio.move_on_after(wait):
            await slot.revived.wait()

    async def _let_another_try(self, node_id: int, timeout: float, deadline: float) -> None:
        """Wait for another lane's attempt, if the last failure affects all lanes.

        Raises: ConnectionFailed, AuthenticationFailed: the node is still unreachable, or the
        timeout expired.
        """
        for (owner, _), trying in self._slots.items():
            if owner == node_id and trying.unreached and trying.settled is not None:
                settled = trying.settled
                break
        else:
            return
        with anyio.CancelScope(deadline=deadline):
            await settled.wait()
        if trying.unreached:
            raise self._unreachable(node_id, trying, timeout, in_time=settled.is_set())

    def _begin(self, node_id: int, lane: str, slot: Slot) -> None:
        address = self._addresses[node_id]
        connection = self.new_connection(address, node_id)
        slot.settled = anyio.Event()

        async def attempt() -> None:
            await self._attempt(connection, slot)

        try:
            self._spawn(attempt, name=f"connect to node {node_id}, {lane}")
        except ClosedError:
            slot.settled = None
            raise

    async def _attempt(self, connection: Connection, slot: Slot) -> None:
        settled = slot.settled
        assert settled is not None
        try:
            await connection.connect(self._setup_timeout(slot))
        except KafkaError as error:
            slot.last_error = error.with_traceback(None)
            slot.failures += 1
            slot.not_before = loop_time() + slot.backoff.next()
            slot.unanswered = 0
            slot.unreached = isinstance(error, AuthenticationFailed) or (
                isinstance(error, ConnectionFailed) and error.stage in UNREACHED
            )
            if slot.unreached:
                self._blame_others(connection.node_id, slot)
            self._log_failure(connection, error)
        else:
            slot.connection = connection
            slot.last_error = None
            slot.unreached = False
            self._note_age(connection)
            self._log_recovery(connection)
            self._forgive_others(connection.node_id, slot)
        finally:
            slot.settled = None
            settled.set()
            moved = connection.node_id is not None and self._addresses.get(connection.node_id) != connection.address
            if moved or slot not in self._slots.values():  # meanwhile the client was closed, or the node moved
                connection.close()

    def _log_failure(self, connection: Connection, error: KafkaError) -> None:
        """Log a failed attempt when the node's outage begins in any lane, then at DEBUG.

        A refused login is logged for one node only: the other nodes refuse it, too.
        """
        is_refusal = isinstance(error, AuthenticationFailed)
        if connection.node_id in self._outages or connection.node_id is None or (is_refusal and self._refused_by):
            self._log.debug("still no connection to %s: %s", connection.who, error)
            return
        self._outages[connection.node_id] = loop_time()
        if is_refusal:
            self._refused_by = connection.who
            self._log_of(connection).error(
                "client %r: requests fail until this is corrected; later requests try again, with backoff, using the "
                "current credentials and certificates: %s",
                self._config.client_id,
                error,
            )
            return
        self._log_of(connection).warning(
            "client %r: no connection to %s, reconnecting with backoff: %s",
            self._config.client_id,
            connection.who,
            error,
        )

    def _log_recovery(self, connection: Connection) -> None:
        self._refused_by = ""
        since = None if connection.node_id is None else self._outages.pop(connection.node_id, None)
        if since is not None:
            elapsed = loop_time() - since
            text = "client %r: reconnected to %s after %.1f s"
            self._log_of(connection).info(text, self._config.client_id, connection.who, elapsed)

    def _log_of(self, connection: Connection) -> FieldLogger:
        return self._log.bound(node_id=connection.node_id, address=str(connection.address))

    def _setup_timeout(self, slot: Slot) -> float:
        """Return an attempt's timeout: grows with consecutive failures, with jitter (KIP-601)."""
        spread = self._rng.uniform(0.8, 1.2) if slot.failures else 1.0
        return self._config.connection_setup_timeout(slot.failures) * spread

    def new_connection(
        self, address: Address, node_id: int | None, *, unseen: bool = False, spawn: Callable[..., object] | None = None
    ) -> Connection:
        """Return a new connection with this client's options.

        `unseen`: without hooks and counts, which belong to the client's loop; for another thread.
        `spawn`: starts its background tasks there.
        """
        connection = Connection(
            address,
            node_id=node_id,
            client_id=self._config.client_id,
            config=self._connection_config,
            hooks=None if unseen else self._hooks,
            may_be_old=not self._is_modern,
            security=self._security,
            spawn=self._spawn if spawn is None else spawn,
            rng=self._rng,
            counts=None if unseen else self.counts,
        )
        if not unseen:
            self._connections = [*self._still_open(), connection]
        return connection

    def _still_open(self) -> list[Connection]:
        return [one for one in self._connections if not one.is_gone]

    def _note_age(self, connection: Connection) -> None:
        if not connection.versions.assumed:
            self._is_modern = True

    def adopt(self, node_id: int, address: Address, connection: Connection) -> None:
        """Keep a bootstrap connection as the main connection of its node."""
        connection.node_id, connection.address = node_id, address  # the same broker, by its advertised address
        self._note_age(connection)
        self._log_recovery(connection)
        self._addresses[node_id] = address
        slot = self._slot(node_id, MAIN)
        if slot.ready is not None or slot.settled is not None:
            connection.close()
        else:
            slot.connection = connection
            slot.forgive()
        self._forgive_others(node_id, slot)

    def _forgive_others(self, node_id: int | None, reached: Slot) -> None:
        """End the others' pauses: this lane reached the node. (Failures count until a response.)"""
        for (owner, _), slot in self._slots.items():
            if owner == node_id and slot is not reached and slot.settled is None and slot.ready is None:
                slot.forgive()

    def _blame_others(self, node_id: int | None, failed: Slot) -> None:
        """Count the failure for the node's other lanes, too: its address is unreachable."""
        for (owner, _), slot in self._slots.items():
            if owner == node_id and slot is not failed and slot.settled is None and slot.ready is None:
                slot.blame(failed)

    def _unreachable(self, node_id: int, slot: Slot, timeout: float, *, in_time: bool) -> KafkaError:
        address = self._addresses.get(node_id)
        error = slot.last_error
        if error is None:
            what = "the connection was lost at once" if in_time else f"not connected within {timeout:.3f} s"
            return ConnectionFailed(f"node {node_id} at {address}: {what}", address=str(address), stage="connect")
        hint = ""
        if address is not None and address.host in LOOPBACK and self._remote_bootstrap:
            hint = (
                f"; node {node_id} advertises {address}, which from here is this machine: "
                "check the broker's advertised.listeners"
            )
        message = f"{error}{hint}"
        if isinstance(error, AuthenticationFailed):
            return AuthenticationFailed(message, address=str(address))
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(message, address=str(address), stage=error.stage)
        return ConnectionFailed(message, address=str(address), stage="handshake")

    # --- choosing ----------------------------------------------------------------------------------------------------

    def least_loaded(self, excluded: Iterable[int] = ()) -> int | None:
        """Return the connected node with fewest requests in flight, else the first out of backoff.

        A random start distributes clients over equal nodes. None when no node is known or all
        are `excluded`.
        """
        left_out = set(excluded)
        candidates = [node_id for node_id in self._addresses if node_id not in left_out]
        if not candidates:
            return None
        start = self._rng.randrange(len(candidates))
        loads = self._loads(candidates)
        return min(candidates[start:] + candidates[:start], key=loads.__getitem__)

    def by_load(self, excluded: Iterable[int] = ()) -> list[int]:
        """Return the nodes that are neither in backoff nor `excluded`, the least busy first.

        Nodes that missed a deadline come last.
        """
        left_out = set(excluded)
        nodes = [node_id for node_id in self._addresses if node_id not in left_out]
        loads = self._loads(nodes)
        shuffled = self._rng.sample(nodes, len(nodes))
        return sorted((node_id for node_id in shuffled if loads[node_id][0] < BACKING_OFF), key=loads.__getitem__)

    def _loads(self, node_ids: Iterable[int]) -> dict[int, tuple[int, float]]:
        """Return the load of each node; the smallest is asked first."""
        late = {node_id for (node_id, _), slot in self._slots.items() if slot.is_late}
        now = loop_time()
        return {node_id: self._load(node_id, now, is_late=node_id in late) for node_id in node_ids}

    def _load(self, node_id: int, now: float, *, is_late: bool) -> tuple[int, float]:
        slot = self._slots.get((node_id, MAIN))
        if slot is None:
            return (LATE if is_late else UNCONNECTED, 0.0)
        if slot.ready is not None:
            return (CONNECTED, slot.ready.in_flight)
        if slot.not_before > now:
            return (BACKING_OFF, slot.not_before)
        return (LATE if is_late else UNCONNECTED, slot.not_before)

    def throttled_until(self, node_id: int) -> float:
        """Return the loop's time until which a broker throttles this client; 0 if it does not."""
        return max(
            (
                slot.connection.throttled_until
                for (owner, _), slot in self._slots.items()
                if owner == node_id and slot.connection is not None
            ),
            default=0.0,
        )

    # --- upkeep ------------------------------------------------------------------------------------------------------

    async def reap(self) -> None:
        """Close idle connections, until cancelled."""
        limit = self._config.connections_max_idle
        while True:
            now = loop_time()
            oldest = now
            for (node_id, lane), slot in list(self._slots.items()):
                connection = slot.ready
                if connection is None or connection.in_flight:
                    continue
                if now - connection.last_used >= limit:
                    self._log.debug("closing %s, %s: idle for %.0f s", connection.who, lane, now - connection.last_used)
                    self._drop(node_id, lane, slot)
                else:
                    oldest = min(oldest, connection.last_used)
            await anyio.sleep(max(oldest + limit - now, limit / 10))

    def close(self) -> list[Connection]:
        """Close every connection; return those whose transport is still open."""
        closing = [slot.connection for slot in self._slots.values() if slot.connection is not None]
        self._slots.clear()
        for connection in closing:
            connection.close(None)
        return self._still_open()
