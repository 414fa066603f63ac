"""The interface of assignors, and their input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from aiokwire.cluster import Cluster
from aiokwire.group.subscription_format import MemberSubscription
from aiokwire.types import TopicPartition

Members = Mapping[str, MemberSubscription]


class PartitionInfo(NamedTuple):
    """One partition, and the racks that have a replica of it."""

    topic: str
    partition: int
    racks: frozenset[str] = frozenset()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


Partitions = Mapping[str, Sequence[PartitionInfo]]
Assignment = dict[str, list[TopicPartition]]


class Assignor(Protocol):
    """Assigns partitions to members, in the group's leader. Every member has its own, for its
    lifetime.

    Any object of this shape can be passed as `partition_assignment_strategy`. The group selects an
    assignor by `name`: all assignors of one name must behave alike.
    """

    @property
    def name(self) -> str:
        """The name in the protocol, for example "range"."""

    @property
    def cooperative(self) -> bool:
        """Whether members keep their partitions while the group rebalances (KIP-429). Then `assign`
        must leave out a partition that another member still owns: the group rebalances again when
        it is revoked."""

    def user_data(self, topics: Iterable[str]) -> bytes:
        """Return the data that this member sends to the leader's assignor with each join."""

    def assign(self, members: Members, partitions: Partitions) -> Assignment:
        """Return the assignment, with an entry for every member. `partitions`: the existing topics
        of all subscriptions.

        Called on the event loop: it must not block.
        """

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Receive the partitions assigned to this member in `generation`."""


class StatelessAssignor:
    """The base of eager assignors without user data."""

    cooperative = False

    def user_data(self, topics: Iterable[str]) -> bytes:
        """Return no data."""
        return b""

    def on_assignment(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        """Ignore the assignment."""


def partitions_of(cluster: Cluster, topics: Iterable[str]) -> dict[str, list[PartitionInfo]]:
    """Return the partitions of the existing `topics`. All replicas count, in sync or not: a replica
    that catches up does not trigger a rebalance."""
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
    """Return static members by instance id, so that they keep their place, then the others by
    member id.

    Strings are ordered by their UTF-16 code units, as in Java.
    """

    def order(member: MemberSubscription) -> tuple[bool, bytes]:
        key = member.member_id if member.instance_id is None else member.instance_id
        return member.instance_id is None, key.encode("utf-16-be", "surrogatepass")

    return sorted(members.values(), key=order)


def racks_matter(members: Iterable[str], partitions: Iterable[frozenset[str]]) -> bool:
    """Return whether racks affect the assignment (KIP-881): some racks of `members` have replicas,
    and not all `partitions` have replicas in the same racks."""
    distinct = set(partitions)
    return len(distinct) > 1 and not frozenset().union(*distinct).isdisjoint(members)
