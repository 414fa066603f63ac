"""The assignment of a group's leader, and when it becomes outdated. No I/O."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from aiokwire.cluster import Cluster, Partition, Topic
from aiokwire.errors import KafkaError, ProtocolViolation
from aiokwire.group.assignors import RangeAssignor
from aiokwire.group.classic.generation import Generation
from aiokwire.group.classic.leader import share_out, subscriptions, watch
from aiokwire.group.subscription_format import decode_assignment, encode_subscription
from aiokwire.protocol.messages.join_group import JoinGroupResponseMember
from aiokwire.types import TopicPartition


def cluster(**topics: int) -> Cluster:
    return Cluster(
        topics=MappingProxyType(
            {
                name: Topic(name, partitions=tuple(Partition(name, number, 0) for number in range(count)))
                for name, count in topics.items()
            }
        )
    )


def members(**topics: list[str]) -> list[JoinGroupResponseMember]:
    return [
        JoinGroupResponseMember(member_id=name, metadata=encode_subscription(wanted)) for name, wanted in topics.items()
    ]


class Unfair(RangeAssignor):
    """A faulty assignor of a user."""

    def __init__(self, decided: dict[str, list[TopicPartition]]) -> None:
        super().__init__()
        self.decided = decided

    def assign(self, members: Any, partitions: Any) -> dict[str, list[TopicPartition]]:
        return self.decided


def test_every_member_receives_its_share() -> None:
    group = subscriptions(members(a=["t"], b=["t", "u"], c=["nowhere"]))
    given = {
        name: decode_assignment(data)[0] for name, data in share_out(RangeAssignor(), group, cluster(t=2, u=1)).items()
    }
    assert given == {
        "a": [TopicPartition("t", 0)],
        "b": [TopicPartition("t", 1), TopicPartition("u", 0)],
        "c": [],
    }


def test_a_member_with_an_unreadable_subscription_is_named() -> None:
    with pytest.raises(ProtocolViolation, match="member 'x'"):
        subscriptions([JoinGroupResponseMember(member_id="x", metadata=b"\x00\x01garbage")])


def test_an_assignor_must_not_assign_a_partition_twice_or_to_a_stranger() -> None:
    group = subscriptions(members(a=["t"], b=["t"]))
    one = TopicPartition("t", 0)
    with pytest.raises(KafkaError, match="to two members"):
        share_out(Unfair({"a": [one], "b": [one]}), group, cluster(t=1))
    with pytest.raises(KafkaError, match="'stranger', which is not a member"):
        share_out(Unfair({"stranger": [one]}), group, cluster(t=1))


def test_a_generation_is_outdated_when_topics_or_partitions_change() -> None:
    topics = frozenset({"t"})
    leader = Generation(1, RangeAssignor(), topics, watch(cluster(t=2), ["t", "u"]), [], False)
    assert leader.outdated(topics, cluster(t=2, other=3)) is None
    assert leader.outdated(topics, cluster(t=3)) == "the partitions of t changed"
    assert leader.outdated(topics, cluster(t=2, u=1)) == "the partitions of u changed"
    assert leader.outdated(topics | {"v"}, cluster(t=2)) == "the subscription changed"
    follower = leader._replace(watch=None)
    assert follower.outdated(topics, cluster(t=9)) is None, "only the leader watches partitions"
