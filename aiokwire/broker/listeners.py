"""The listeners of a broker, one a node: opened together, stopped and started one by one."""

from __future__ import annotations

import itertools

import anyio.abc

from aiokwire.broker.nodes import Endpoint, Node
from aiokwire.broker.server import Server
from aiokwire.broker.state import BrokerState
from aiokwire.broker.turns import Turns


class Listeners:
    """Opens and closes the servers of all nodes."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._servers: dict[int, Server] = {}
        self._bound: dict[int, Endpoint] = {}
        self._connection_ids = itertools.count(1)  # one row for all: a journal tells connections apart by it
        self._turns = Turns()
        self._tasks: anyio.abc.TaskGroup | None = None

    async def listen(self, endpoint: Endpoint) -> Endpoint:
        """Bind every node: the first one to the endpoint, the others to the ports after it (port 0: any free ones).

        Raises: ConnectionFailed: a port is taken, or the address is not one of this machine.
        """
        host, port = endpoint
        for number, node in enumerate(self._state.nodes):
            await self._bind(node, Endpoint(host, port + number if port else 0))
        return self._bound[self._state.nodes.first.id]

    async def _bind(self, node: Node, endpoint: Endpoint) -> Server:
        server = self._servers[node.id] = Server(self._state, node, self._connection_ids, self._turns)
        backlog = self._state.configs.integer("socket.listen.backlog.size")
        self._bound[node.id] = await server.listen(endpoint, backlog)
        return server

    def advertise(self, told: Endpoint | None) -> None:
        """Let every node be known by the address that it is bound to, or by `told`, counted on as in `listen`."""
        for number, node in enumerate(self._state.nodes):
            bound = self._bound[node.id]
            host, port = told or bound
            node.endpoint = Endpoint(host, port + number if told is not None and port else bound.port)

    async def serve(self, tasks: anyio.abc.TaskGroup) -> None:
        """Begin to accept connections; their drivers run in `tasks`."""
        self._tasks = tasks
        for server in self._servers.values():
            await server.serve(tasks)

    async def stop(self, node: Node) -> None:
        """Cut a node off: its port refuses, its connections break, its fetch sessions are forgotten."""
        node.running = False
        node.sessions.clear()
        await self._servers[node.id].abort()

    async def start(self, node: Node) -> None:
        """Bring a node back at its port.

        Raises: ConnectionFailed: somebody else has the port now.
        """
        assert self._tasks is not None, "a broker that serves"
        server = await self._bind(node, self._bound[node.id])
        node.running = True
        await server.serve(self._tasks)

    def close_idle(self, longer_than: float) -> None:
        """Close the connections on which nothing was asked for `longer_than` seconds."""
        for server in self._servers.values():
            server.close_idle(longer_than)

    async def close(self) -> None:
        """Stop listening and close every connection. May be called again."""
        async with anyio.create_task_group() as tasks:
            for server in self._servers.values():
                tasks.start_soon(server.close)
        self._state.peer_log.flush()
