"""Round robin: all partitions of all topics, one after the other, to the members in turn. Follows Java's
RoundRobinAssignor.
"""

from __future__ import annotations

from collections.abc import Iterable

from aiokwire.group.assignors.base import Assignment, Members, Partitions, in_order
from aiokwire.types import TopicPartition


class RoundRobinAssignor:
    """Partitions go to the members in turn; one that does not want the topic is passed over."""

    name = "roundrobin"
    cooperative = False

    def user_data(self, topics: Iterable[str]) -> bytes:
        """Nothing."""
        return b""

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Of no interest here."""

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Even where all members want the same topics."""
        given: Assignment = {member_id: [] for member_id in members}
        row = in_order(members)
        wants = [frozenset(member.topics) for member in row]
        turn = 0
        for topic, infos in sorted(partitions.items()):
            if not any(topic in wanted for wanted in wants):
                continue
            for info in infos:
                while topic not in wants[turn]:
                    turn = (turn + 1) % len(row)
                given[row[turn].member_id].append(info.topic_partition)
                turn = (turn + 1) % len(row)
        return given
