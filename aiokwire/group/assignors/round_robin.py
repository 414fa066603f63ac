"""Round robin: partitions go to the members in turn, as in Java's RoundRobinAssignor."""

from __future__ import annotations

from aiokwire.group.assignors.base import Assignment, Members, Partitions, StatelessAssignor, in_order


class RoundRobinAssignor(StatelessAssignor):
    """Assigns partitions to the members in turn, skipping members without the topic."""

    name = "roundrobin"

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Assign in turn; shares are even if all members subscribe to the same topics."""
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
