"""Range: each member gets a row of neighbouring partitions of every topic, so that members with the same topics get the
same numbers of topics with as many partitions. Follows Java's RangeAssignor, with its racks (KIP-881).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aiokwire.group.assignors.base import Assignment, Members, PartitionInfo, Partitions, in_order, racks_matter
from aiokwire.group.subscription_format import MemberSubscription
from aiokwire.types import TopicPartition


class RangeAssignor:
    """Each member gets a row of neighbouring partitions of every topic."""

    name = "range"
    cooperative = False

    def user_data(self, topics: Iterable[str]) -> bytes:
        """Nothing."""
        return b""

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Of no interest here."""

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Racks come first, as far as shares and equal rows of topics alike allow it; then the rest in order."""
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
    """One topic while its partitions are given away."""

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
        """Whether it has a replica in the member's rack; a member without one is near to all."""
        return not member.rack_id or member.rack_id in info.racks

    def room(self, member: MemberSubscription) -> int:
        """How many more the member may get."""
        return max(0, self._share + (self._extra > 0) - self._counts[member.member_id])

    def give(self, member: MemberSubscription, infos: Sequence[PartitionInfo]) -> None:
        self._given[member.member_id] += [info.topic_partition for info in infos]
        self._counts[member.member_id] += len(infos)
        if self._counts[member.member_id] > self._share:
            self._extra -= 1
        for info in infos:
            del self._free[info]

    def fill(self, may_have: Callable[[MemberSubscription, PartitionInfo], bool]) -> None:
        """One member after the other takes what it may have, up to its share."""
        for member in self.takers:
            if infos := [info for info in self._free if may_have(member, info)][: self.room(member)]:
                self.give(member, infos)


def _alike(topics: Iterable[_Topic]) -> Iterable[list[_Topic]]:
    """Topics that go to the same members and have as many partitions: the same numbers should be together."""
    groups: dict[object, list[_Topic]] = {}
    for topic in topics:
        key = (tuple(member.member_id for member in topic.takers), len(topic.infos))
        groups.setdefault(key, []).append(topic)
    return groups.values()


def _match_together(topics: list[_Topic]) -> None:
    """A number goes to the first member that is near to it in all topics and has room for it."""
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
