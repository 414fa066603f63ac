"""The connections of one client: for each node and lane one at most, made on demand, tried again with backoff.

Whatever may wait at a broker (fetches, joins) has a lane of its own, since a broker handles the requests of a
connection one at a time. A connection attempt runs in the client's task group; whoever wants the connection waits for
that attempt, and may stop waiting without harm to the others. While a node cannot be reached, one lane tries for all.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol

import anyio

from aiokwire.backoff import Backoff
from aiokwire.cluster.config import ClientConfig
from aiokwire.cluster.snapshot import Broker
from aiokwire.errors import ClosedError, ConnectionFailed, KafkaError, RequestTimedOut
from aiokwire.hooks import Hooks
from aiokwire.net import Address, Connection

logger = logging.getLogger(__name__)

MAIN = "main"
COORDINATOR = "coordinator"
JOIN = "join"  # a JoinGroup or SyncGroup is answered when the others of the group have come, too

# Where an attempt ended that tells about every lane's; later ones concern the broker behind the connection.
UNREACHED = frozenset({"resolve", "connect"})

# In which order nodes are asked what any of them can answer.
CONNECTED = 0
UNCONNECTED = 1
LATE = 2  # missed a deadline, and is not connected again
BACKING_OFF = 3

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def failure_level(error: KafkaError, otherwise: int = logging.INFO) -> int:
    """Return the level at which callers log that a request failed.

    DEBUG for a connection failure, which `Nodes` logs once per outage of a broker; else `otherwise`.
    """
    cause = error.__cause__ if isinstance(error, RequestTimedOut) else error
    is_logged = isinstance(cause, ConnectionFailed) and (cause.stage != "resolve" or bool(cause.address))
    return logging.DEBUG if is_logged else otherwise


class Spawn(Protocol):
    """How a background task is begun (`Supervisor.spawn`)."""

    def __call__(self, func: Callable[[], Coroutine[Any, Any, object]], *, name: str | None = None) -> None: ...


class Slot:
    """The place of one node's connection in one lane."""

    __slots__ = ("backoff", "connection", "failures", "last_error", "not_before", "revived", "settled", "unreached")

    def __init__(self, backoff: Backoff) -> None:
        self.connection: Connection | None = None  # ready, or closed and not replaced yet
        self.backoff = backoff
        self.failures = 0  # attempts that failed in a row
        self.not_before = 0.0  # the loop's clock: the next attempt waits until then
        self.last_error: KafkaError | None = None
        self.unreached = False  # the last attempt, of this or another lane, did not come as far as the broker
        self.revived = anyio.Event()  # set, and replaced, when the node proves reachable: the pause is over
        self.settled: anyio.Event | None = None  # set when the attempt that is under way ends; None without one

    @property
    def ready(self) -> Connection | None:
        connection = self.connection
        return connection if connection is not None and connection.ready else None

    @property
    def is_late(self) -> bool:
        """Whether the last connection ended because the node missed a deadline, and no other one was made since."""
        error = self.last_error if self.connection is None else self.connection.error
        return isinstance(error, RequestTimedOut)

    def blame(self, other: Slot) -> None:
        """The node cannot be reached, as the attempt of another lane found: it counts as one of this lane's."""
        self.failures = max(self.failures, other.failures)
        self.not_before = max(self.not_before, other.not_before)
        self.backoff.attempts = max(self.backoff.attempts, other.backoff.attempts)
        self.last_error = other.last_error
        self.unreached = True

    def forgive(self) -> None:
        """The node can be reached: what failed before counts no more, and nobody goes on pausing."""
        self.failures = 0
        self.unreached = False
        self.not_before = 0.0
        self.backoff.reset()
        self.revived.set()
        self.revived = anyio.Event()


class Nodes:
    """Addresses of nodes, and the connections to them."""

    def __init__(self, config: ClientConfig, *, spawn: Spawn, rng: random.Random, hooks: Hooks | None = None) -> None:
        self._config = config
        self._connection_config = config.connection
        self._spawn = spawn
        self._rng = rng
        self._hooks = hooks
        self._addresses: dict[int, Address] = {}
        self._slots: dict[tuple[int, str], Slot] = {}
        self._outages: dict[int, float] = {}  # unreachable node to the loop's time of the first failed attempt
        self._is_modern = False  # a broker answered ApiVersions: who hangs up on it now has trouble and is not old
        self._remote_bootstrap = any(address.host not in LOOPBACK for address in config.addresses)

    # --- addresses ---------------------------------------------------------------------------------------------------

    def follow(self, brokers: Mapping[int, Broker]) -> None:
        """Take over the addresses of a new snapshot; connections to addresses that are gone are closed."""
        known = {node_id: broker.address for node_id, broker in brokers.items()}
        before, self._addresses = self._addresses, known
        for node_id in self._outages.keys() - known.keys():
            del self._outages[node_id]
            logger.info("client %r: unreachable node %d left the cluster", self._config.client_id, node_id)
        for (node_id, lane), slot in list(self._slots.items()):
            if slot.settled is not None:
                continue  # looked at again when the attempt ends
            at = slot.connection.address if slot.connection is not None else before.get(node_id)
            address = known.get(node_id)
            unused = slot.ready is None or slot.ready.in_flight == 0
            if address != at and (address is not None or unused):
                self._drop(node_id, lane, slot)

    def learn(self, node_id: int, address: Address) -> None:
        """A node that another answer named (a coordinator)."""
        if node_id not in self._addresses:
            self._addresses[node_id] = address

    def address(self, node_id: int) -> Address | None:
        """Where a node is; None when it is not known."""
        return self._addresses.get(node_id)

    def _drop(self, node_id: int, lane: str, slot: Slot) -> None:
        del self._slots[node_id, lane]
        slot.forgive()  # whoever pauses looks for the node's new place
        if slot.connection is not None:
            slot.connection.close()

    # --- connections -------------------------------------------------------------------------------------------------

    def ready(self, node_id: int, lane: str = MAIN) -> Connection | None:
        """The ready connection of a lane, if there is one now."""
        slot = self._slots.get((node_id, lane))
        return None if slot is None else slot.ready

    async def connection(self, node_id: int, lane: str, timeout: float) -> Connection:
        """The ready connection of a lane; made when there is none, after the pause that past failures impose.

        Raises: ConnectionFailed: the attempt failed (whatever it was that failed), the node is not known, or the time
        is over; ClosedError: the client was closed.
        """
        ready = self.ready(node_id, lane)
        if ready is not None:
            return ready
        deadline = anyio.current_time() + timeout
        slot = self._slot(node_id, lane)
        if slot.settled is None:
            self._note_loss(slot)
            await self._pause(slot, node_id, deadline)
            await self._let_another_try(node_id, timeout, deadline)
            slot = self._slot(node_id, lane)  # while it waited, others may have come first, or the node may have moved
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
        config = self._config
        return Backoff(config.reconnect_backoff_ms / 1000, config.reconnect_backoff_max_ms / 1000, rng=self._rng)

    def _note_loss(self, slot: Slot) -> None:
        """A connection that was lost: one that had worked is replaced at once, one that had not counts as a failure."""
        lost = slot.connection
        if lost is None:
            return
        slot.connection = None
        slot.last_error = lost.error
        if lost.answers == 0 and lost.error is not None:
            slot.failures += 1
            slot.not_before = anyio.current_time() + slot.backoff.next()
        else:
            slot.failures = 0
            slot.backoff.reset()

    async def _pause(self, slot: Slot, node_id: int, deadline: float) -> None:
        wait = slot.not_before - anyio.current_time()
        if wait <= 0:
            return
        if slot.not_before > deadline:
            raise self._unreachable(node_id, slot, deadline - anyio.current_time(), in_time=True)
        with anyio.move_on_after(wait):
            await slot.revived.wait()

    async def _let_another_try(self, node_id: int, timeout: float, deadline: float) -> None:
        """Wait for the attempt of any lane at a node that could not be reached the last time.

        Raises: ConnectionFailed: it could not be reached again, or the time is over.
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
            slot.not_before = anyio.current_time() + slot.backoff.next()
            slot.unreached = isinstance(error, ConnectionFailed) and error.stage in UNREACHED
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
            if moved or slot not in self._slots.values():  # the client was closed, or the node went elsewhere meanwhile
                connection.close()

    def _log_failure(self, connection: Connection, error: KafkaError) -> None:
        """Log a failed attempt: a WARNING when the outage of the node begins, for all lanes, then at DEBUG."""
        if connection.node_id in self._outages or connection.node_id is None:
            logger.debug("still no connection to %s: %s", connection.who, error)
            return
        self._outages[connection.node_id] = anyio.current_time()
        logger.warning(
            "client %r: no connection to %s, reconnecting with backoff: %s",
            self._config.client_id,
            connection.who,
            error,
        )

    def _log_recovery(self, connection: Connection) -> None:
        since = None if connection.node_id is None else self._outages.pop(connection.node_id, None)
        if since is not None:
            elapsed = anyio.current_time() - since
            logger.info(
                "client %r: connected to %s again after %.1f s", self._config.client_id, connection.who, elapsed
            )

    def _setup_timeout(self, slot: Slot) -> float:
        """KIP-601: grows with each failure in a row, spread by a fifth."""
        config = self._config
        grown = config.socket_connection_setup_timeout_ms * 2.0 ** min(slot.failures, 30)
        limit = max(config.socket_connection_setup_timeout_ms, config.socket_connection_setup_timeout_max_ms)
        spread = self._rng.uniform(0.8, 1.2) if slot.failures else 1.0
        return min(grown, limit) * spread / 1000

    def new_connection(self, address: Address, node_id: int | None, *, unseen: bool = False) -> Connection:
        """A connection object of this client's kind, not connected.

        `unseen` by the hooks: it is for another thread's loop, and they are called on the client's only.
        """
        return Connection(
            address,
            node_id=node_id,
            client_id=self._config.client_id,
            config=self._connection_config,
            hooks=None if unseen else self._hooks,
            may_be_old=not self._is_modern,
        )

    def _note_age(self, connection: Connection) -> None:
        if not connection.versions.assumed:
            self._is_modern = True

    def adopt(self, node_id: int, address: Address, connection: Connection) -> None:
        """Keep a bootstrap connection as the main one of the node that it turned out to lead to."""
        connection.node_id, connection.address = node_id, address  # the same place, by its advertised name
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
        """One lane reached the node, so the others need not pause. (Its own past stands until answers come.)"""
        for (owner, _), slot in self._slots.items():
            if owner == node_id and slot is not reached and slot.settled is None and slot.ready is None:
                slot.forgive()

    def _blame_others(self, node_id: int | None, failed: Slot) -> None:
        """The node's address leads nowhere, whatever the lane."""
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
        if isinstance(error, ConnectionFailed):
            return ConnectionFailed(message, address=str(address), stage=error.stage)
        return ConnectionFailed(message, address=str(address), stage="handshake")

    # --- choosing ----------------------------------------------------------------------------------------------------

    def least_loaded(self, excluded: Iterable[int] = ()) -> int | None:
        """The connected node with the fewest requests in flight; without one, the node that may be tried soonest.

        A random start spreads clients over nodes that are alike. None when no node is known or all are `excluded`.
        """
        left_out = set(excluded)
        candidates = [node_id for node_id in self._addresses if node_id not in left_out]
        if not candidates:
            return None
        start = self._rng.randrange(len(candidates))
        loads = self._loads(candidates)
        return min(candidates[start:] + candidates[:start], key=loads.__getitem__)

    def by_load(self, excluded: Iterable[int] = ()) -> list[int]:
        """The nodes that may be asked now, the least busy first; those in backoff and those `excluded` are left out.

        Nodes that missed a deadline come last.
        """
        left_out = set(excluded)
        nodes = [node_id for node_id in self._addresses if node_id not in left_out]
        loads = self._loads(nodes)
        shuffled = self._rng.sample(nodes, len(nodes))
        return sorted((node_id for node_id in shuffled if loads[node_id][0] < BACKING_OFF), key=loads.__getitem__)

    def _loads(self, node_ids: Iterable[int]) -> dict[int, tuple[int, float]]:
        """How soon each node should be asked: the smaller, the sooner."""
        late = {node_id for (node_id, _), slot in self._slots.items() if slot.is_late}
        now = anyio.current_time()
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
        """The loop's time until which a broker asked for silence; 0 when it did not."""
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
        """Close connections that nobody used for long, until cancelled."""
        limit = self._config.connections_max_idle_ms / 1000
        while True:
            now = anyio.current_time()
            oldest = now
            for (node_id, lane), slot in list(self._slots.items()):
                connection = slot.ready
                if connection is None or connection.in_flight:
                    continue
                if now - connection.last_used >= limit:
                    logger.debug("closing %s, %s: idle for %.0f s", connection.who, lane, now - connection.last_used)
                    self._drop(node_id, lane, slot)
                else:
                    oldest = min(oldest, connection.last_used)
            await anyio.sleep(max(oldest + limit - now, limit / 10))

    def close(self) -> list[Connection]:
        """Close every connection; gives those whose transport still has to end."""
        closing = [slot.connection for slot in self._slots.values() if slot.connection is not None]
        self._slots.clear()
        for connection in closing:
            connection.close(None)
        return closing
