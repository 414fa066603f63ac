"""What the leader of a classic group does: it shares the partitions out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from aiokwire.cluster import Client, Cluster
from aiokwire.errors import KafkaError, ProtocolViolation, RequestTimedOut
from aiokwire.group.assignors import Assignor, partitions_of
from aiokwire.group.subscription_format import MemberSubscription, decode_subscription, encode_assignment
from aiokwire.protocol.messages.join_group import JoinGroupResponseMember

# Seconds for topics that only other members subscribe to; without an answer they get none of them this time.
FOREIGN_TOPICS_WAIT = 5.0


def subscriptions(members: Sequence[JoinGroupResponseMember]) -> dict[str, MemberSubscription]:
    """What the members told.

    Raises: ProtocolViolation: one told what cannot be read; the error names it.
    """
    return {
        member.member_id: decode_subscription(member.member_id, bytes(member.metadata), member.group_instance_id)
        for member in members
    }


async def know_topics(client: Client, topics: Iterable[str]) -> Cluster:
    """The metadata with all of `topics`, as far as they exist."""
    names = frozenset(topics)
    client.metadata.want(names)
    if any(name not in client.cluster.topics for name in names):
        with suppress(RequestTimedOut):
            await client.metadata.update(FOREIGN_TOPICS_WAIT)
    return client.cluster


def nothing_for(members: Iterable[str]) -> dict[str, bytes]:
    """An assignment without partitions for every member."""
    return {member_id: encode_assignment(()) for member_id in members}


def share_out(assignor: Assignor, members: Mapping[str, MemberSubscription], cluster: Cluster) -> dict[str, bytes]:
    """The assignment of every member, encoded.

    Raises: KafkaError: the assignor failed, or gave something away twice.
    """
    topics = {topic for member in members.values() for topic in member.topics}
    try:
        decided = assignor.assign(members, partitions_of(cluster, sorted(topics)))
    except Exception as error:  # whatever a user's own assignor raises
        raise KafkaError(f"the assignor {assignor.name!r} failed: {type(error).__name__}: {error}") from error
    taken: set[object] = set()
    for member_id, partitions in decided.items():
        if member_id not in members:
            raise ProtocolViolation(f"the assignor {assignor.name!r} gave something to {member_id!r}, no member")
        for partition in partitions:
            if partition in taken:
                raise ProtocolViolation(f"the assignor {assignor.name!r} gave {partition} to two members")
            taken.add(partition)
    return {member_id: encode_assignment(decided.get(member_id, ())) for member_id in members}
