"""The leader of a classic group: assigns partitions to all members, detects changed topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from aiokwire.cluster import Client, Cluster
from aiokwire.errors import KafkaError, ProtocolViolation, RequestTimedOut
from aiokwire.group.assignors import Assignor, partitions_of
from aiokwire.group.classic.decisions import partition_counts
from aiokwire.group.subscription_format import MemberSubscription, decode_subscription, encode_assignment
from aiokwire.protocol.messages.join_group import JoinGroupResponseMember

# Seconds to wait for topics that only other members subscribe to; without a response they are not assigned this time.
FOREIGN_TOPICS_WAIT = 5.0


class Watch(NamedTuple):
    """The topics and partition counts of the leader's assignment."""

    topics: frozenset[str]
    counts: Mapping[str, int]

    def changed(self, cluster: Cluster) -> list[str]:
        """Return the topics whose partition counts have changed."""
        now = partition_counts(cluster, self.topics)
        return sorted(name for name in self.topics if now.get(name) != self.counts.get(name))


def watch(cluster: Cluster, topics: Iterable[str]) -> Watch:
    """Return the current partition counts of `topics`."""
    names = frozenset(topics)
    return Watch(names, partition_counts(cluster, names))


def subscriptions(members: Sequence[JoinGroupResponseMember]) -> dict[str, MemberSubscription]:
    """Decode the subscriptions of the members, by member id.

    Raises: ProtocolViolation: one cannot be decoded; the error names the member.
    """
    return {
        member.member_id: decode_subscription(member.member_id, bytes(member.metadata), member.group_instance_id)
        for member in members
    }


async def know_topics(client: Client, topics: Iterable[str]) -> Cluster:
    """Return the metadata with all existing `topics`."""
    names = frozenset(topics)
    client.metadata.want(names)
    if any(name not in client.cluster.topics for name in names):
        with suppress(RequestTimedOut):
            await client.metadata.update(FOREIGN_TOPICS_WAIT)
    return client.cluster


def nothing_for(members: Iterable[str]) -> dict[str, bytes]:
    """Return an assignment without partitions for every member."""
    return {member_id: encode_assignment(()) for member_id in members}


def share_out(assignor: Assignor, members: Mapping[str, MemberSubscription], cluster: Cluster) -> dict[str, bytes]:
    """Return the assignment of every member, encoded.

    Raises: KafkaError: the assignor failed, or assigned a partition twice.
    """
    topics = {topic for member in members.values() for topic in member.topics}
    try:
        decided = assignor.assign(members, partitions_of(cluster, sorted(topics)))
    except Exception as error:  # an assignor of the user may raise anything
        raise KafkaError(f"the assignor {assignor.name!r} failed: {type(error).__name__}: {error}") from error
    taken: set[object] = set()
    for member_id, partitions in decided.items():
        if member_id not in members:
            raise ProtocolViolation(
                f"the assignor {assignor.name!r} assigned partitions to {member_id!r}, which is not a member"
            )
        for partition in partitions:
            if partition in taken:
                raise ProtocolViolation(f"the assignor {assignor.name!r} assigned {partition} to two members")
            taken.add(partition)
    return {member_id: encode_assignment(decided.get(member_id, ())) for member_id in members}
