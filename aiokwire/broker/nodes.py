"""The nodes of a broker: usually one, several in tests that move leaders and coordinators.

All nodes serve the same topics and logs of this process; each has its own listener, leads some
partitions and coordinates some keys. Nothing is replicated: a new leader finds the log complete.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from aiokwire.broker.fetch_sessions import FetchSessions
from aiokwire.broker.topics import Partition
from aiokwire.errors import ConfigurationError, InvalidArgument

NO_NODE = -1
LAST_PORT = 65535


class Endpoint(NamedTuple):
    """The address of a broker for clients."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


NOWHERE = Endpoint("", 0)


def parse_endpoint(text: str, option: str) -> Endpoint:
    """Parse `host:port`, `[IPv6]:port` or `:port` (all addresses); port 0 picks a free one.

    Raises: ConfigurationError: naming the option and the value.
    """
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not port.isascii() or not port.isdigit() or int(port) > LAST_PORT:
        raise ConfigurationError(
            f"{option} must be 'host:port' with a port from 0 to 65535 (0 picks a free one), not {text!r}"
        )
    return Endpoint(host or "0.0.0.0", int(port))


class Leader(NamedTuple):
    """The leader of a partition in metadata; the node is -1 without a leader."""

    node_id: int
    epoch: int


class Node:
    """One node: an id with its own port and fetch sessions, over the topics of all nodes."""

    __slots__ = ("endpoints", "id", "running", "sessions")

    def __init__(self, node_id: int, sessions: FetchSessions) -> None:
        self.id: int = node_id
        # By listener, set once it listens; clients get the address that they connected to instead of a wildcard host.
        self.endpoints: dict[str, Endpoint] = {}
        self.running: bool = True
        self.sessions: FetchSessions = sessions

    @property
    def endpoint(self) -> Endpoint:
        """The address of the first listener."""
        return next(iter(self.endpoints.values()), NOWHERE)

    def endpoint_at(self, listener: str) -> Endpoint:
        """Return the address of a listener; the first one's if the node has none of that name."""
        return self.endpoints.get(listener) or self.endpoint

    def __repr__(self) -> str:
        return f"<Node {self.id}{'' if self.running else ', stopped'}>"


class _Metadata(NamedTuple):
    """The metadata that clients receive while a test has frozen it."""

    running: list[Node]
    leaders: dict[Partition, Leader]


class Nodes:
    """All nodes, and which of them leads a partition or coordinates a key."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self.ids: tuple[int, ...] = tuple(self._nodes)
        self.first: Node = nodes[0]
        self._pinned: dict[str, int] = {}  # coordinators that were moved, by key
        self._frozen: _Metadata | None = None

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def get(self, node_id: int) -> Node:
        """Return the node of that id.

        Raises: InvalidArgument: no node has this id.
        """
        node = self._nodes.get(node_id)
        if node is None:
            raise InvalidArgument(f"node {node_id} does not exist: the nodes are {', '.join(map(str, self.ids))}")
        return node

    def running(self) -> list[Node]:
        """Return the running nodes, by id."""
        return [node for node in self._nodes.values() if node.running]

    def may_have(self, brokers: Sequence[int]) -> bool:
        """Return whether a partition may be assigned to these ids: existing nodes, none twice."""
        return bool(brokers) and len(set(brokers)) == len(brokers) and set(brokers) <= set(self.ids)

    # --- partitions ---------------------------------------------------------------------------------------------------

    def place(self, index: int) -> int:
        """Return the node to lead a new partition of that number: round robin of running nodes."""
        return self._from(index % len(self.ids)).id

    def replicas(self, index: int) -> list[int]:
        """Return the nodes that have a partition of that number: all, its first leader first."""
        first = index % len(self.ids)
        return [*self.ids[first:], *self.ids[:first]]

    def move(self, partition: Partition, node_id: int) -> None:
        """Make a node leader of a partition, under the next leader epoch."""
        partition.move_to(node_id)

    def fail_over(self, partitions: Iterable[Partition], stopped: int) -> None:
        """Move the partitions of a stopped node to running ones, if there are any."""
        for partition in partitions:
            if partition.leader == stopped:
                successor = self._from(partition.index % len(self.ids))
                if successor.running:
                    self.move(partition, successor.id)

    def _from(self, place: int) -> Node:
        """Return the first running node from that place on, or that place's node if none runs."""
        order = [self._nodes[node_id] for node_id in (*self.ids[place:], *self.ids[:place])]
        return next((node for node in order if node.running), order[0])

    # --- keys ---------------------------------------------------------------------------------------------------------

    def coordinator(self, key: str) -> Node:
        """Return the node that coordinates a group or transactional id."""
        pinned = self._pinned.get(key)
        # Not Python's hash, which differs between processes.
        place = self.ids.index(pinned) if pinned is not None else zlib.crc32(key.encode()) % len(self.ids)
        return self._from(place)

    def move_coordinator(self, key: str, node_id: int) -> None:
        """Make a node coordinator of a group or transactional id."""
        self._pinned[key] = node_id

    # --- metadata -----------------------------------------------------------------------------------------------------

    def freeze(self, partitions: Iterable[Partition]) -> None:
        """Keep the metadata of this moment."""
        self._frozen = None
        self._frozen = _Metadata(self.running(), {partition: self.leader(partition) for partition in partitions})

    def thaw(self) -> None:
        """Return to current metadata."""
        self._frozen = None

    @property
    def frozen(self) -> bool:
        return self._frozen is not None

    def listed(self) -> list[Node]:
        """Return the nodes in metadata."""
        return self._frozen.running if self._frozen is not None else self.running()

    @property
    def controller(self) -> int:
        """The controller in metadata: the running node with the lowest id."""
        return min((node.id for node in self.listed()), default=NO_NODE)

    def leader(self, partition: Partition) -> Leader:
        """Return the leader of a partition in metadata."""
        if self._frozen is not None:
            frozen = self._frozen.leaders.get(partition)
            if frozen is not None:
                return frozen
        runs = self._nodes[partition.leader].running
        return Leader(partition.leader if runs else NO_NODE, partition.leader_epoch)
