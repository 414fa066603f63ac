"""The sticky assignor: even shares, and partitions stay with their members as far as possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from aiokwire.compat.aiokafka.cluster import ClusterMetadata
from aiokwire.compat.aiokafka.coordinator.assignors import shared
from aiokwire.compat.aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor, Assignments, Members
from aiokwire.compat.aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokwire.group import ASSIGNORS
from aiokwire.types import TopicPartition


class StickyPartitionAssignor(AbstractPartitionAssignor):
    """The eager sticky assignor. As in aiokafka the class remembers the last assignment; consumers
    have one each."""

    name = "sticky"
    version = 0
    DEFAULT_GENERATION_ID: ClassVar[int] = -1

    member_assignment: ClassVar[list[TopicPartition] | None] = None
    generation: ClassVar[int] = DEFAULT_GENERATION_ID

    @classmethod
    def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
        """Return the assignment of every member."""
        return shared.assign(cls.name, cls.version, cluster, members)

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """Return a subscription to `topics`, with the last assignment."""
        return cls._metadata(topics, cls.member_assignment, cls.generation)

    @classmethod
    def _metadata(
        cls, topics: Iterable[str], partitions: Sequence[TopicPartition] | None, generation: int = DEFAULT_GENERATION_ID
    ) -> ConsumerProtocolMemberMetadata:
        assignor = ASSIGNORS["sticky"]()
        if partitions is not None:
            assignor.on_assignment(partitions, generation)
        names = list(topics)
        return ConsumerProtocolMemberMetadata(cls.version, names, assignor.user_data(names))

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Remember the assignment."""
        cls.member_assignment = assignment.partitions()

    @classmethod
    def on_generation_assignment(cls, generation: int) -> None:
        """Remember the generation of the last assignment."""
        cls.generation = generation
