"""The assignors without user data, as in Java: range and round robin.

Range: each member receives consecutive partitions of every topic, so that the same members read the
same partition numbers of topics with equal partition counts; with racks (KIP-881). Round robin:
partitions go to the members in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aiokwire.group.assignors.base import (
    Assignment,
    Members,
    PartitionInfo,
    Partitions,
    StatelessAssignor,
    in_order,
    racks_matter,
)
from aiokwire.group.subscription_format import MemberSubscription


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


class RangeAssignor(StatelessAssignor):
    """Assigns consecutive partitions of every topic to each member."""

    name = "range"

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Assign by rack first, as far as even shares and equal ranges allow; then in order."""
        given: Assignment = {member_id: [] for member_id in members}
        row = in_order(members)
        topics = [
            _Topic([one for one in row if name in one.topics], infos, given)
            for name, infos in sorted(partitions.items())
            if infos
        ]
        if any(topic.racks_matter for topic in topics):
            for alike in _alike(topic for topic in topics if topic.racked):
                if len(alike) > 1:
                    _match_together(alike)
                elif alike[0].racks_matter:
                    alike[0].fill(alike[0].is_near)
        for topic in topics:
            topic.fill(lambda member, info: True)
        return {member_id: sorted(mine) for member_id, mine in given.items()}


class _Topic:
    """One topic during the assignment."""

    def __init__(self, takers: list[MemberSubscription], infos: Sequence[PartitionInfo], given: Assignment) -> None:
        self.takers = takers
        self.infos = infos
        self.racked = any(member.rack_id for member in takers)
        self.racks_matter = racks_matter(
            (member.rack_id for member in takers if member.rack_id), (info.racks for info in infos)
        )
        self._given = given
        self._free = dict.fromkeys(infos)
        self._counts = {member.member_id: 0 for member in takers}
        self._share, self._extra = divmod(len(infos), len(takers)) if takers else (0, 0)

    def is_near(self, member: MemberSubscription, info: PartitionInfo) -> bool:
        """Return whether the partition has a replica in the member's rack, if it has a rack."""
        return not member.rack_id or member.rack_id in info.racks

    def room(self, member: MemberSubscription) -> int:
        """Return how many more partitions the member may receive."""
        return max(0, self._share + (self._extra > 0) - self._counts[member.member_id])

    def give(self, member: MemberSubscription, infos: Sequence[PartitionInfo]) -> None:
        self._given[member.member_id] += [info.topic_partition for info in infos]
        self._counts[member.member_id] += len(infos)
        if self._counts[member.member_id] > self._share:
            self._extra -= 1
        for info in infos:
            del self._free[info]

    def fill(self, may_have: Callable[[MemberSubscription, PartitionInfo], bool]) -> None:
        """Give each member in turn the free partitions that it may have, up to its share."""
        for member in self.takers:
            if infos := [info for info in self._free if may_have(member, info)][: self.room(member)]:
                self.give(member, infos)


def _alike(topics: Iterable[_Topic]) -> Iterable[list[_Topic]]:
    """Group topics with the same members and the same partition count."""
    groups: dict[object, list[_Topic]] = {}
    for topic in topics:
        key = (tuple(member.member_id for member in topic.takers), len(topic.infos))
        groups.setdefault(key, []).append(topic)
    return groups.values()


def _match_together(topics: list[_Topic]) -> None:
    """Assign each number to the first member that is near to it in all topics and has room."""
    left = list(topics[0].takers)
    for number in range(len(topics[0].infos)):
        for member in left:
            if all(topic.is_near(member, topic.infos[number]) and topic.room(member) for topic in topics):
                break
        else:
            continue
        for topic in topics:
            topic.give(member, [topic.infos[number]])
        if not any(topic.room(member) for topic in topics):
            left.remove(member)
