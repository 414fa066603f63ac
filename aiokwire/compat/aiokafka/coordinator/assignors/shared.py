"""Our strategies behind aiokafka's interface."""

from __future__ import annotations

from typing import Any

from aiokwire.compat.aiokafka.coordinator.assignors.abstract import Assignments, Members
from aiokwire.compat.aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokwire.group import ASSIGNORS, MemberSubscription, PartitionInfo


def assign(name: str, version: int, cluster: Any, members: Members) -> Assignments:
    """Run one of our assignors on aiokafka's values."""
    ours = {
        member_id: MemberSubscription(member_id, tuple(each.subscription), user_data=each.user_data)
        for member_id, each in members.items()
    }
    topics = sorted({topic for each in members.values() for topic in each.subscription})
    found = {topic: sorted(cluster.partitions_for_topic(topic) or ()) for topic in topics}
    partitions = {
        topic: [PartitionInfo(topic, each) for each in each_found] for topic, each_found in found.items() if each_found
    }
    chosen = ASSIGNORS[name]().assign(ours, partitions)
    return {member_id: assignment_of(version, chosen.get(member_id, ())) for member_id in members}


def assignment_of(version: int, partitions: Any) -> ConsumerProtocolMemberAssignment:
    """Return an assignment, by topic and partition in order."""
    topics: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        topics.setdefault(tp.topic, []).append(tp.partition)
    return ConsumerProtocolMemberAssignment(version, list(topics.items()), b"")
