"""The nodes of a broker: one as a rule, several where a test wants to see leaders and coordinators move.

All of them serve the same topics and logs of this process; each has a listener of its own, leads some partitions and
coordinates some keys. Nothing is replicated: a node that takes a partition over finds its log complete.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from aiokwire.broker.fetch_sessions import FetchSessions
from aiokwire.broker.topics import Partition
from aiokwire.errors import InvalidArgument

NOBODY = -1


class Endpoint(NamedTuple):
    """Where clients reach a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Leader(NamedTuple):
    """Who leads a partition, as metadata tells it; the node is -1 while nobody does."""

    node_id: int
    epoch: int


class Node:
    """One node of the cluster that a broker plays."""

    __slots__ = ("endpoint", "id", "running", "sessions")

    def __init__(self, node_id: int, sessions: FetchSessions) -> None:
        self.id = node_id
        # Set once it listens; a wildcard host stands for the address that a client came in by.
        self.endpoint = Endpoint("", 0)
        self.running = True
        self.sessions = sessions

    def __repr__(self) -> str:
        return f"<Node {self.id}{'' if self.running else ', stopped'}>"


class _Told(NamedTuple):
    """What metadata said when it was frozen."""

    running: list[Node]
    leaders: dict[Partition, Leader]


class Nodes:
    """All nodes, and what they are to partitions and keys."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = {node.id: node for node in nodes}
        self.ids = tuple(self._nodes)
        self.first = nodes[0]
        self._pinned: dict[str, int] = {}  # coordinators that were moved, by key
        self._frozen: _Told | None = None

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def get(self, node_id: int) -> Node:
        """The node of that id.

        Raises: InvalidArgument: there is none.
        """
        node = self._nodes.get(node_id)
        if node is None:
            raise InvalidArgument(f"there is no node {node_id}: the nodes are {', '.join(map(str, self.ids))}")
        return node

    def running(self) -> list[Node]:
        """The nodes that serve, by id."""
        return [node for node in self._nodes.values() if node.running]

    def may_have(self, brokers: Sequence[int]) -> bool:
        """Whether a partition may be assigned to these: nodes that there are, none of them twice."""
        return bool(brokers) and len(set(brokers)) == len(brokers) and set(brokers) <= set(self.ids)

    # --- partitions ---------------------------------------------------------------------------------------------------

    def place(self, index: int) -> int:
        """Who leads a new partition of that number: one after the other, those that are stopped left out."""
        return self._from(index % len(self.ids)).id

    def replicas(self, index: int) -> list[int]:
        """Who has a partition of that number: everybody, its first leader first."""
        first = index % len(self.ids)
        return [*self.ids[first:], *self.ids[:first]]

    def move(self, partition: Partition, node_id: int) -> None:
        """Make a node leader of a partition, under the next leader epoch."""
        partition.leader = node_id
        partition.leader_epoch += 1
        partition.changed()

    def fail_over(self, partitions: Iterable[Partition], stopped: int) -> None:
        """Give the partitions that a stopped node led to others, as far as any run."""
        for partition in partitions:
            if partition.leader == stopped:
                successor = self._from(partition.index % len(self.ids))
                if successor.running:
                    self.move(partition, successor.id)

    def _from(self, place: int) -> Node:
        """The first node that runs, from that place on; the node of that place when none does."""
        order = [self._nodes[node_id] for node_id in (*self.ids[place:], *self.ids[:place])]
        return next((node for node in order if node.running), order[0])

    # --- keys ---------------------------------------------------------------------------------------------------------

    def coordinator(self, key: str) -> Node:
        """Who coordinates a group or transactional id."""
        pinned = self._pinned.get(key)
        # The same place in every run: Python's own hash of a string is another one in each process.
        place = self.ids.index(pinned) if pinned is not None else zlib.crc32(key.encode()) % len(self.ids)
        return self._from(place)

    def move_coordinator(self, key: str, node_id: int) -> None:
        """Make a node coordinator of a group or transactional id."""
        self._pinned[key] = node_id

    # --- what metadata says -------------------------------------------------------------------------------------------

    def freeze(self, partitions: Iterable[Partition]) -> None:
        """Let metadata say from now on what is true at this moment."""
        self._frozen = None
        self._frozen = _Told(self.running(), {partition: self.leader(partition) for partition in partitions})

    def thaw(self) -> None:
        """Let metadata say what is true again."""
        self._frozen = None

    @property
    def frozen(self) -> bool:
        return self._frozen is not None

    def told(self) -> list[Node]:
        """The nodes that metadata names."""
        return self._frozen.running if self._frozen is not None else self.running()

    @property
    def controller(self) -> int:
        """The node that metadata calls the controller: the lowest one that runs."""
        return min((node.id for node in self.told()), default=NOBODY)

    def leader(self, partition: Partition) -> Leader:
        """Who leads a partition, as metadata tells it."""
        if self._frozen is not None:
            told = self._frozen.leaders.get(partition)
            if told is not None:
                return told
        runs = self._nodes[partition.leader].running
        return Leader(partition.leader if runs else NOBODY, partition.leader_epoch)
