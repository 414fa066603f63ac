"""What every assignor has, and what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from aiokwire.cluster import Cluster
from aiokwire.group.subscription_format import MemberSubscription
from aiokwire.types import TopicPartition

Members = Mapping[str, MemberSubscription]


class PartitionInfo(NamedTuple):
    """One partition that can be given, and the racks that have a replica of it."""

    topic: str
    partition: int
    racks: frozenset[str] = frozenset()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


Partitions = Mapping[str, Sequence[PartitionInfo]]
Assignment = dict[str, list[TopicPartition]]


class Assignor(Protocol):
    """Decides in the group's leader who gets which partitions. Every member has one, which lives as long as it does.

    An object of this shape can stand in `partition_assignment_strategy`. Members choose an assignor by `name`, so all
    that have the name must mean the same by it.
    """

    @property
    def name(self) -> str:
        """What the group agrees upon, as in "range"."""

    @property
    def cooperative(self) -> bool:
        """Whether members keep what they have while the group rebalances (KIP-429). Then `assign` must not give a
        partition to one member while another one still owns it: it leaves it out, and the group rebalances again."""

    def user_data(self, topics: Iterable[str]) -> bytes:
        """What this member tells the leader's assignor, at each join."""

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Who gets what; `partitions` has those topics that exist of all that members subscribe to. Every member needs
        an entry in the result.

        Called on the loop: it must not wait.
        """

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """This member was given `partitions` in `generation`."""


def partitions_of(cluster: Cluster, topics: Iterable[str]) -> dict[str, list[PartitionInfo]]:
    """The partitions of those `topics` that exist, as assignors take them. All replicas count, in sync or not: they
    will be, and nobody rebalances when they are."""
    racks = {node_id: broker.rack for node_id, broker in cluster.brokers.items() if broker.rack}
    found: dict[str, list[PartitionInfo]] = {}
    for name in topics:
        topic = cluster.topics.get(name)
        if topic is not None and topic.partitions:
            found[name] = [
                PartitionInfo(name, each.partition, frozenset(racks[node] for node in each.replicas if node in racks))
                for each in topic.partitions
            ]
    return found


def in_order(members: Members) -> list[MemberSubscription]:
    """Static members by their instance id, then the others by their member id: a static one keeps its place.

    Java's order of strings is that of their UTF-16 code units.
    """

    def place(member: MemberSubscription) -> tuple[bool, bytes]:
        key = member.member_id if member.instance_id is None else member.instance_id
        return member.instance_id is None, key.encode("utf-16-be", "surrogatepass")

    return sorted(members.values(), key=place)


def racks_matter(members: Iterable[str], partitions: Iterable[frozenset[str]]) -> bool:
    """Whether it makes a difference who reads what (KIP-881): some racks of `members` have some partitions, and not all
    `partitions` have replicas in the same racks."""
    distinct = set(partitions)
    return len(distinct) > 1 and not frozenset().union(*distinct).isdisjoint(members)
