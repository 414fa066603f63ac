"""The interface of assignors in aiokafka."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping

from aiokwire.compat.aiokafka.cluster import ClusterMetadata
from aiokwire.compat.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

Members = Mapping[str, ConsumerProtocolMemberMetadata]
Assignments = dict[str, ConsumerProtocolMemberAssignment]


class AbstractPartitionAssignor(abc.ABC):
    """Assigns partitions in the leader of a group."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name in the protocol, which all members share."""

    @classmethod
    @abc.abstractmethod
    def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
        """Return the assignment of every member."""

    @classmethod
    @abc.abstractmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return what a member sends when it joins."""

    @classmethod
    @abc.abstractmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Receive this member's assignment."""
