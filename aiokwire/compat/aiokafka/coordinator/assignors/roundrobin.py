"""The roundrobin assignor."""

from __future__ import annotations

from collections.abc import Iterable

from aiokwire.compat.aiokafka.cluster import ClusterMetadata
from aiokwire.compat.aiokafka.coordinator.assignors import shared
from aiokwire.compat.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor, Assignments, Members
from aiokwire.compat.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)


class RoundRobinPartitionAssignor(AbstractPartitionAssignor):
    """All partitions in turn."""

    name = "roundrobin"
    version = 0

    @classmethod
    def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
        """Return the assignment of every member."""
        return shared.assign(cls.name, cls.version, cluster, members)

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return a subscription to `topics`."""
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), b"")

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Ignore the assignment."""
