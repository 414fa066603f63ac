"""`NewPartitions`."""

from __future__ import annotations

from collections.abc import Sequence


class NewPartitions:
    """The new number of a topic's partitions, and perhaps the replicas of each added one."""

    def __init__(self, total_count: int, new_assignments: Sequence[Sequence[int]] | None = None) -> None:
        self.total_count = total_count
        self.new_assignments = new_assignments
