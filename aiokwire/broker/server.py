"""The listeners of a broker, each at every node: sockets and their connections."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import itertools
import logging
import os
import socket
from collections.abc import Iterator, Sequence

import anyio
import anyio.abc
import anyio.lowlevel

from aiokwire.async_library import start_soon
from aiokwire.broker.acceptor import TlsAcceptor, listening_socket
from aiokwire.broker.connection import ServerConnection
from aiokwire.broker.nodes import LAST_PORT, Endpoint, Node
from aiokwire.broker.peers import ConnectionLimits
from aiokwire.broker.security.listeners import Listener, ListenerSecurity, security_of
from aiokwire.broker.state import BrokerState
from aiokwire.broker.turns import Turns
from aiokwire.clock import loop_time
from aiokwire.errors import ConfigurationError, ConnectionFailed
from aiokwire.threads import run_in_thread

logger: logging.Logger = logging.getLogger(__name__)

_LOOPBACK = ("127.0.0.1", "::1")
_NO_IPV6 = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
_PORTS_TRIED = 8  # attempts to find a port that is free at every address
CLOSE_GRACE = 1.0  # seconds for connections to send pending responses


async def _resolve(host: str, port: int) -> list[str]:
    """Return a host's addresses, IPv4 first: names resolve to IPv6 even on machines without it."""
    if host.lower() == "localhost":  # clients try both, regardless of the host table (RFC 6761)
        return list(_LOOPBACK)
    with contextlib.suppress(ValueError):
        return [str(ipaddress.ip_address(host))]  # no lookup, which would start a thread
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise ConnectionFailed(
            f"cannot listen on {host}:{port}: the host cannot be resolved ({error.strerror or error})",
            address=f"{host}:{port}",
            stage="resolve",
        ) from error
    return sorted(dict.fromkeys(str(info[4][0]) for info in found), key=lambda address: ":" in address)


class Server:
    """One listener of one node, and its connections."""

    def __init__(
        self,
        state: BrokerState,
        node: Node,
        ids: Iterator[int],
        turns: Turns,
        security: ListenerSecurity,
        limits: ConnectionLimits,
    ) -> None:
        """`ids` numbers the connections; all servers share it and `turns`, a node's `limits`."""
        self._state = state
        self._node = node
        self._tasks: anyio.abc.TaskGroup | None = None  # drives the connections while the server runs
        self._servers: list[asyncio.Server] = []
        self._acceptors: list[TlsAcceptor] = []  # instead of servers, if the listener uses TLS
        self._connections: dict[ServerConnection, None] = {}  # in the order of their arrival
        self._ids = ids
        self.turns = turns
        self.security = security
        self._limits = limits
        self._empty = anyio.Event()  # set when the last connection was closed

    @property
    def connections(self) -> list[ServerConnection]:
        return list(self._connections)

    async def listen(self, endpoint: Endpoint, backlog: int) -> Endpoint:
        """Listen on every address of the host, all with the same port; return host and port.

        Raises: ConnectionFailed: the port is taken, or the address is not one of this machine.
        """
        host, port = endpoint
        addresses = await _resolve(host, port)
        for _ in range(_PORTS_TRIED if port == 0 else 1):
            try:
                return Endpoint(host, await self._bind(addresses, port, backlog))
            except OSError as error:
                failed = error
                self._unbind()
                if error.errno != errno.EADDRINUSE:
                    break
        raise ConnectionFailed(
            f"cannot listen on {host}:{port}: {os.strerror(failed.errno) if failed.errno else failed}; "
            "choose another port, or port 0 for a free one",
            address=f"{host}:{port}",
            stage="listen",
        ) from failed

    async def _bind(self, addresses: list[str], port: int, backlog: int) -> int:
        """Listen on the addresses; return the port, which the system picks for the first one if 0.

        Raises: OSError.
        """
        for number, address in enumerate(addresses):
            try:
                port = await self._bind_one(address, port, backlog)
            except OSError as error:
                if number and ":" in address and error.errno in _NO_IPV6:
                    logger.debug("not listening on [%s]:%d: %s", address, port, error)
                    continue
                raise
        return port

    async def _bind_one(self, address: str, port: int, backlog: int) -> int:
        if self.security.tls is not None:
            listening = listening_socket(address, port, backlog)
            self._acceptors.append(TlsAcceptor(listening, self._accept, self.security.tls, self._state.peer_log))
            return int(listening.getsockname()[1])
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._accept, address, port, backlog=backlog, start_serving=False)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _unbind(self) -> None:
        for server in self._servers:
            server.close()
        for acceptor in self._acceptors:
            acceptor.close()
        self._servers.clear()
        self._acceptors.clear()

    async def serve(self, tasks: anyio.abc.TaskGroup) -> None:
        """Accept connections; their drivers run in `tasks`."""
        self._tasks = tasks
        for server in self._servers:
            await server.start_serving()
        for acceptor in self._acceptors:
            acceptor.start(tasks)

    def _accept(self) -> ServerConnection:
        return ServerConnection(self, self._state, self._node, next(self._ids))

    def opened(self, connection: ServerConnection) -> None:
        """Take a new connection."""
        if self._tasks is None:
            connection.abort()
            return
        refusal = self._limits.refusal(connection.host)
        if refusal is not None:
            self._state.peer_log.warn(connection.peer, refusal)
            connection.abort()
            return
        self._limits.add(connection.host)
        self._connections[connection] = None
        self._state.counts.opened()
        if self._state.quotas.enabled:
            self._throttle(connection)
        start_soon(self._tasks, connection.drive)

    def _throttle(self, connection: ServerConnection) -> None:
        """Count a connection for the quota of its address (KIP-612)."""
        host = connection.peer.rpartition(":")[0]
        pause = self._state.quotas.count_connection(host) / 1000
        if pause:
            self._state.peer_log.warn(
                connection.peer, f"its quota of new connections is exceeded; it is closed after {pause:.3f} s"
            )
            connection.refuse_after(pause)

    def lost(self, connection: ServerConnection) -> None:
        """Remove a closed connection."""
        if connection in self._connections:
            del self._connections[connection]
            self._state.counts.closed()
            self._limits.remove(connection.host)
        if not self._connections:
            self._empty.set()

    def close_overdue(self) -> None:
        """Close the connections that did not log in, or end a request, in time."""
        now = asyncio.get_running_loop().time()
        for connection in self.connections:
            connection.close_if_overdue(now)

    def close_idle(self, longer_than: float) -> None:
        """Close the connections without a request for `longer_than` seconds."""
        now = loop_time()
        for connection in self.connections:
            if connection.idle and now - connection.last_used > longer_than:
                logger.info("%s closed: idle for %.0f s", connection, now - connection.last_used)
                connection.close()

    async def abort(self) -> None:
        """Stop listening and abort every connection; pending responses are lost."""
        for connection in self.connections:
            connection.abort()
        await self.close()

    async def close(self) -> None:
        """Stop listening, send pending responses, close every connection. May be called again."""
        self._tasks = None
        await self._accept_no_more()
        for server in self._servers:
            server.close()
        for acceptor in self._acceptors:
            acceptor.close()
        self._empty = anyio.Event()
        for connection in self.connections:
            connection.close()
        if self._connections:
            with anyio.move_on_after(CLOSE_GRACE):
                await self._empty.wait()
        for connection in self.connections:
            connection.abort()
        for server in self._servers:
            with anyio.move_on_after(CLOSE_GRACE):
                await server.wait_closed()

    async def _accept_no_more(self) -> None:
        """Wait until accepted connections are opened.

        asyncio accepts a connection in one turn of the loop and opens it in the next: a server that
        is closed in between leaves the socket neither opened nor closed (CPython 3.11).
        """
        loop = asyncio.get_running_loop()
        for server in self._servers:
            if isinstance(server, asyncio.Server):  # uvloop opens what it accepts
                for listening in server.sockets:
                    loop.remove_reader(listening)
        with anyio.CancelScope(shield=True):
            for _ in range(3):  # opened, rejected by `opened`, closed
                await anyio.lowlevel.checkpoint()


class Listeners:
    """Opens and closes the servers of all nodes: one for each node and listener."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._listeners: list[Listener] = []
        self._security: dict[str, ListenerSecurity] = {}  # by listener
        self._servers: dict[tuple[int, str], Server] = {}  # by node and listener
        self._bound: dict[tuple[int, str], Endpoint] = {}
        self._limits = {node.id: ConnectionLimits(state.configs) for node in state.nodes}
        self._connection_ids = itertools.count(1)  # shared: a journal distinguishes connections by their number
        self._turns = Turns()
        self._tasks: anyio.abc.TaskGroup | None = None

    async def listen(self, listeners: Sequence[Listener]) -> None:
        """Bind every node: the first to the address, others to the ports after it (0: any free).

        Raises: ConfigurationError: there are fewer ports than nodes after an address, or TLS or
        SASL lacks options. ConnectionFailed: a port is taken, or the address is not one of this
        machine.
        """
        self._listeners = list(listeners)
        for listener in listeners:
            self._check_ports(f"listener {listener.name}", listener.endpoint)
            security = self._security[listener.name] = security_of(listener, self._state)
            if security.tls is not None:
                await security.tls.fresh_context()  # now: a broker with a wrong certificate must not start
        for listener in listeners:
            host, port = listener.endpoint
            for number, node in enumerate(self._state.nodes):
                await self._bind(node, listener.name, Endpoint(host, port + number if port else 0))

    def _check_ports(self, option: str, endpoint: Endpoint) -> None:
        last = endpoint.port + len(self._state.nodes) - 1
        if endpoint.port and last > LAST_PORT:
            raise ConfigurationError(
                f"{option} {endpoint} with {len(self._state.nodes)} nodes needs the ports {endpoint.port} to {last}, "
                f"but the last port is {LAST_PORT}: choose a port up to {endpoint.port - last + LAST_PORT}"
            )

    async def _bind(self, node: Node, listener: str, endpoint: Endpoint) -> Server:
        key = node.id, listener
        server = self._servers[key] = Server(
            self._state, node, self._connection_ids, self._turns, self._security[listener], self._limits[node.id]
        )
        backlog = self._state.configs.integer("socket.listen.backlog.size")
        self._bound[key] = await server.listen(endpoint, backlog)
        return server

    def bound(self, listener: str) -> Endpoint:
        """Return the address that the first node's listener is bound to."""
        return self._bound[self._state.nodes.first.id, listener]

    def advertise(self) -> None:
        """Set the addresses of every node: the bound ones, or advertised ones with following ports.

        Raises: ConfigurationError: there are fewer ports than nodes after an advertised one.
        """
        for listener in self._listeners:
            advertised = listener.advertised_endpoint
            if advertised is not None:
                self._check_ports("advertised", advertised)
            for number, node in enumerate(self._state.nodes):
                bound = self._bound[node.id, listener.name]
                host, port = advertised or bound
                shown = Endpoint(host, port + number if advertised is not None and port else bound.port)
                node.endpoints[listener.name] = shown

    async def serve(self, tasks: anyio.abc.TaskGroup) -> None:
        """Accept connections; their drivers run in `tasks`."""
        self._tasks = tasks
        for server in self._servers.values():
            await server.serve(tasks)

    async def stop(self, node: Node) -> None:
        """Stop a node: close its ports, break its connections, remove its fetch sessions."""
        node.running = False
        node.sessions.clear()
        for listener in self._listeners:
            await self._servers[node.id, listener.name].abort()

    async def start(self, node: Node) -> None:
        """Start a stopped node at its ports.

        Raises: ConnectionFailed: a port is taken.
        """
        assert self._tasks is not None, "a broker that serves"
        names = [listener.name for listener in self._listeners]
        servers = [await self._bind(node, name, self._bound[node.id, name]) for name in names]
        node.running = True
        for server in servers:
            await server.serve(self._tasks)

    def close_idle(self, longer_than: float) -> None:
        """Close the connections without a request for `longer_than` seconds."""
        for server in self._servers.values():
            server.close_idle(longer_than)

    def close_overdue(self) -> None:
        """Close the connections that did not log in, or end a request, in time."""
        for server in self._servers.values():
            server.close_overdue()

    async def reload_tls(self) -> None:
        """Read changed certificates now; new connections use them.

        Invalid files are logged, and the previous ones stay in use.
        """
        for security in self._security.values():
            if security.tls is not None:
                await run_in_thread(security.tls.reload)

    async def close(self) -> None:
        """Stop listening and close every connection. May be called again."""
        async with anyio.create_task_group() as tasks:
            for server in self._servers.values():
                tasks.start_soon(server.close)
        self._state.peer_log.flush()
        if self._state.authorizer is not None:
            self._state.authorizer.audit.flush()
