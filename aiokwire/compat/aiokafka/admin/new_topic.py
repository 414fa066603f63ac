"""`NewTopic`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiokwire.compat.aiokafka.errors import IllegalArgumentError


class NewTopic:
    """A topic to create: its numbers, or the replicas of each partition with numbers of -1."""

    def __init__(
        self,
        name: str,
        num_partitions: int,
        replication_factor: int,
        replica_assignments: Mapping[int, Sequence[int]] | None = None,
        topic_configs: Mapping[str, str] | None = None,
    ) -> None:
        """Raises: IllegalArgumentError: neither numbers nor replicas, or both."""
        if (num_partitions == -1 or replication_factor == -1) == (replica_assignments is None):
            raise IllegalArgumentError(
                "pass num_partitions and replication_factor, or replica_assignments with both of them -1"
            )
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignments: Mapping[int, Sequence[int]] = replica_assignments or {}
        self.topic_configs: Mapping[str, str] = topic_configs or {}
