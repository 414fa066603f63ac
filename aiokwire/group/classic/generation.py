"""The id and the generation of a member of a classic group. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from aiokwire.cluster import Cluster
from aiokwire.group.assignors import Assignor
from aiokwire.group.classic.leader import Watch
from aiokwire.protocol.messages.join_group import JoinGroupResponseMember


class MemberId:
    """The id to join with; empty if the coordinator must generate one.

    A coordinator that moves or restarts loads the group from its log, as of the last complete
    generation. That group contains the former id of a member whose id has changed since, and every
    join would wait until the session of the former id ends. So the member keeps its former id until
    a generation is complete.
    """

    def __init__(self) -> None:
        self.current: str = ""
        self._former = ""  # of the last complete generation, after it was refused

    def given(self, member_id: str) -> None:
        """Take over the id from the response to a join."""
        self.current = member_id

    def settled(self) -> None:
        """Drop the former id: the generation is complete, so the coordinator stored the new id."""
        self._former = ""

    def refused(self) -> None:
        """Drop the current id, which the coordinator does not know, or return to the former one."""
        if self._former and self._former != self.current:
            self._recall()
        else:
            self._former, self.current = self.current, ""

    def moved(self) -> None:
        """Return to the former id: the group may have been reloaded. An id received since is kept,
        because the group waits for it."""
        if self._former and not self.current:
            self._recall()

    def left(self) -> str:
        """Drop both ids, and return the current one: the member leaves."""
        gone, self.current, self._former = self.current, "", ""
        return gone

    def _recall(self) -> None:
        self.current, self._former = self._former, ""


class Generation(NamedTuple):
    """One generation, as this member sees it. Created from the response to JoinGroup."""

    number: int
    assignor: Assignor
    topics: frozenset[str]  # the subscription of this member at the join
    watch: Watch | None  # None if this member does not lead
    members: list[JoinGroupResponseMember]  # empty if this member does not lead
    is_given: bool  # the coordinator keeps the current assignment (KIP-814)
    leader: str = ""  # the member id of the leader
    yields: bool = False  # this member joined with partitions, and only revokes them (see `strategy`)

    def outdated(self, topics: frozenset[str], cluster: Cluster) -> str | None:
        """Return why the group must rebalance; None if it need not."""
        if self.topics != topics:
            return "the subscription changed"
        changed = [] if self.watch is None else self.watch.changed(cluster)
        return f"the partitions of {', '.join(changed)} changed" if changed else None
