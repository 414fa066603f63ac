"""What a member knows of the generation that it is in. Made from a JoinGroup's answer, gone with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokwire.cluster import Cluster
from aiokwire.group.assignors import Assignor
from aiokwire.group.classic.decisions import partition_counts
from aiokwire.protocol.messages.join_group import JoinGroupResponseMember


class Watch(NamedTuple):
    """What the leader's assignment was made from."""

    topics: frozenset[str]
    counts: Mapping[str, int]

    def changed(self, cluster: Cluster) -> list[str]:
        """The topics whose partitions are not what they were."""
        now = partition_counts(cluster, self.topics)
        return sorted(name for name in self.topics if now.get(name) != self.counts.get(name))


def watch(cluster: Cluster, topics: Iterable[str]) -> Watch:
    """What there is now of `topics`."""
    names = frozenset(topics)
    return Watch(names, partition_counts(cluster, names))


class Generation(NamedTuple):
    """One generation, as this member sees it."""

    number: int
    assignor: Assignor
    topics: frozenset[str]  # that this member subscribed to then
    watch: Watch | None  # the leader's; None for everybody else
    members: list[JoinGroupResponseMember]  # known to the leader alone
    is_given: bool  # the coordinator hands out the assignment that it has (KIP-814)
    leader: str = ""  # its member id
    yields: bool = False  # this member joined with partitions, and gives them up instead of taking new ones: `strategy`

    def outdated(self, topics: frozenset[str], cluster: Cluster) -> str | None:
        """Why the group has to be rebalanced; None while all is as it was."""
        if self.topics != topics:
            return "the subscription changed"
        changed = [] if self.watch is None else self.watch.changed(cluster)
        return f"the partitions of {', '.join(changed)} changed" if changed else None
