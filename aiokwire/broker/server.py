"""The listeners of a broker, one per node: sockets and their connections."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import itertools
import logging
import os
import socket
from collections.abc import Iterator

import anyio
import anyio.abc
import anyio.lowlevel

from aiokwire.broker.connection import ServerConnection
from aiokwire.broker.nodes import Endpoint, Node
from aiokwire.broker.state import BrokerState
from aiokwire.broker.turns import Turns
from aiokwire.errors import ConfigurationError, ConnectionFailed

logger = logging.getLogger(__name__)

_LOOPBACK = ("127.0.0.1", "::1")
_NO_IPV6 = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
_LAST_PORT = 65535
_PORTS_TRIED = 8  # attempts to find a port that is free at every address
CLOSE_GRACE = 1.0  # seconds for connections to send pending responses


def parse_endpoint(text: str, option: str) -> Endpoint:
    """Parse `host:port`, `[IPv6]:port` or `:port` (all addresses); port 0 picks a free one.

    Raises: ConfigurationError: naming the option and the value.
    """
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not port.isascii() or not port.isdigit() or int(port) > _LAST_PORT:
        raise ConfigurationError(
            f"{option} must be 'host:port' with a port from 0 to 65535 (0 picks a free one), not {text!r}"
        )
    return Endpoint(host or "0.0.0.0", int(port))


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
    """The listener of one node, and its connections."""

    def __init__(self, state: BrokerState, node: Node, ids: Iterator[int], turns: Turns) -> None:
        """`ids` numbers the connections; all listeners share it, and `turns`."""
        self._state = state
        self._node = node
        self._tasks: anyio.abc.TaskGroup | None = None  # drives the connections, while it serves
        self._servers: list[asyncio.Server] = []
        self._connections: dict[ServerConnection, None] = {}  # in the order of their arrival
        self._ids = ids
        self.turns = turns
        self._empty = anyio.Event()  # set when the last connection is gone

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
        loop = asyncio.get_running_loop()
        for address in addresses:
            try:
                server = await loop.create_server(self._accept, address, port, backlog=backlog, start_serving=False)
            except OSError as error:
                if self._servers and ":" in address and error.errno in _NO_IPV6:
                    logger.debug("not listening on [%s]:%d: %s", address, port, error)
                    continue
                raise
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
        return port

    def _unbind(self) -> None:
        for server in self._servers:
            server.close()
        self._servers.clear()

    async def serve(self, tasks: anyio.abc.TaskGroup) -> None:
        """Accept connections; their drivers run in `tasks`."""
        self._tasks = tasks
        for server in self._servers:
            await server.start_serving()

    def _accept(self) -> ServerConnection:
        return ServerConnection(self, self._state, self._node, next(self._ids))

    def opened(self, connection: ServerConnection) -> None:
        """Take a new connection."""
        if self._tasks is None:
            connection.abort()
            return
        most = self._state.configs.integer("max.connections")
        if len(self._connections) >= most:
            self._state.peer_log.warn(connection.peer, f"max.connections ({most}) is reached")
            connection.abort()
            return
        self._connections[connection] = None
        if self._state.quotas.enabled:
            self._throttle(connection)
        self._tasks.start_soon(connection.drive)

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
        self._connections.pop(connection, None)
        if not self._connections:
            self._empty.set()

    def close_idle(self, longer_than: float) -> None:
        """Close the connections without a request for `longer_than` seconds."""
        now = anyio.current_time()
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
            for _ in range(3):  # opened, refused by `opened`, closed
                await anyio.lowlevel.checkpoint()


class Listeners:
    """Opens and closes the servers of all nodes."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._servers: dict[int, Server] = {}
        self._bound: dict[int, Endpoint] = {}
        self._connection_ids = itertools.count(1)  # shared: a journal distinguishes connections by their number
        self._turns = Turns()
        self._tasks: anyio.abc.TaskGroup | None = None

    async def listen(self, endpoint: Endpoint) -> Endpoint:
        """Bind every node: the first to the endpoint, others to the ports after it (0: any free).

        Raises: ConfigurationError: there are fewer ports than nodes after the endpoint's.
        ConnectionFailed: a port is taken, or the address is not one of this machine.
        """
        self._check_ports("listen", endpoint)
        host, port = endpoint
        for number, node in enumerate(self._state.nodes):
            await self._bind(node, Endpoint(host, port + number if port else 0))
        return self._bound[self._state.nodes.first.id]

    def _check_ports(self, option: str, endpoint: Endpoint) -> None:
        last = endpoint.port + len(self._state.nodes) - 1
        if endpoint.port and last > _LAST_PORT:
            raise ConfigurationError(
                f"{option} {endpoint} with {len(self._state.nodes)} nodes needs the ports {endpoint.port} to {last}, "
                f"but the last port is {_LAST_PORT}: choose a port up to {endpoint.port - last + _LAST_PORT}"
            )

    async def _bind(self, node: Node, endpoint: Endpoint) -> Server:
        server = self._servers[node.id] = Server(self._state, node, self._connection_ids, self._turns)
        backlog = self._state.configs.integer("socket.listen.backlog.size")
        self._bound[node.id] = await server.listen(endpoint, backlog)
        return server

    def advertise(self, advertised: Endpoint | None) -> None:
        """Set the address of every node: the bound one, or `advertised` with the following ports.

        Raises: ConfigurationError: there are fewer ports than nodes after the advertised one.
        """
        if advertised is not None:
            self._check_ports("advertised", advertised)
        for number, node in enumerate(self._state.nodes):
            bound = self._bound[node.id]
            host, port = advertised or bound
            node.endpoint = Endpoint(host, port + number if advertised is not None and port else bound.port)

    async def serve(self, tasks: anyio.abc.TaskGroup) -> None:
        """Accept connections; their drivers run in `tasks`."""
        self._tasks = tasks
        for server in self._servers.values():
            await server.serve(tasks)

    async def stop(self, node: Node) -> None:
        """Stop a node: its port refuses, its connections break, its fetch sessions are removed."""
        node.running = False
        node.sessions.clear()
        await self._servers[node.id].abort()

    async def start(self, node: Node) -> None:
        """Start a stopped node at its port.

        Raises: ConnectionFailed: the port is taken.
        """
        assert self._tasks is not None, "a broker that serves"
        server = await self._bind(node, self._bound[node.id])
        node.running = True
        await server.serve(self._tasks)

    def close_idle(self, longer_than: float) -> None:
        """Close the connections without a request for `longer_than` seconds."""
        for server in self._servers.values():
            server.close_idle(longer_than)

    async def close(self) -> None:
        """Stop listening and close every connection. May be called again."""
        async with anyio.create_task_group() as tasks:
            for server in self._servers.values():
                tasks.start_soon(server.close)
        self._state.peer_log.flush()
