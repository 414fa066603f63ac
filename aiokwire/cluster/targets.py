"""The targets of requests."""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple, TypeAlias

from aiokwire.cluster.coordinators import CoordinatorKind
from aiokwire.cluster.nodes import MAIN
from aiokwire.types import TopicPartition


# These two are dataclasses, because empty named tuples would equal each other.
@dataclasses.dataclass(frozen=True, slots=True)
class AnyNode:
    """The least busy broker."""

    def __str__(self) -> str:
        return "any broker"


@dataclasses.dataclass(frozen=True, slots=True)
class Controller:
    """The controller. With KRaft any broker forwards its requests."""

    def __str__(self) -> str:
        return "the controller"


class Node(NamedTuple):
    """One broker, on one of its lanes."""

    node_id: int
    lane: str = MAIN

    def __str__(self) -> str:
        return f"node {self.node_id}"


class Leader(NamedTuple):
    """The broker that leads a partition."""

    tp: TopicPartition

    def __str__(self) -> str:
        return f"the leader of {self.tp}"


class Coordinator(NamedTuple):
    """The broker that coordinates a group or a transactional id."""

    kind: CoordinatorKind
    key: str

    def __str__(self) -> str:
        return f"the coordinator of {self.kind.name.lower()} {self.key!r}"


ANY: Final = AnyNode()
CONTROLLER: Final = Controller()

Target: TypeAlias = AnyNode | Controller | Node | Leader | Coordinator
