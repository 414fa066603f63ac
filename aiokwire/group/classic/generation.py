"""What a member of a classic group knows about itself: its id and its generation. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from aiokwire.cluster import Cluster
from aiokwire.group.assignors import Assignor
from aiokwire.group.classic.leader import Watch
from aiokwire.protocol.messages.join_group import JoinGroupResponseMember


class MemberId:
    """The id to join with; empty while the coordinator has to generate one.

    A coordinator that moves or restarts loads the group from its log, as of the last complete generation. A member that
    got another id since then is in it under its former one, for which no process answers: every join would wait until
    that session ends. So the former id is kept until a generation is complete.
    """

    def __init__(self) -> None:
        self.current = ""
        self._former = ""  # of the last complete generation, after it was refused

    def given(self, member_id: str) -> None:
        """The response to a join names it."""
        self.current = member_id

    def settled(self) -> None:
        """A generation is complete with it: the coordinator has stored this one."""
        self._former = ""

    def refused(self) -> None:
        """The coordinator does not know it."""
        if self._former and self._former != self.current:
            self._recall()
        else:
            self._former, self.current = self.current, ""

    def moved(self) -> None:
        """The group may have been reloaded. An id received since is kept: the group waits for its member."""
        if self._former and not self.current:
            self._recall()

    def left(self) -> str:
        """The member leaves. Return the id that it had."""
        gone, self.current, self._former = self.current, "", ""
        return gone

    def _recall(self) -> None:
        self.current, self._former = self._former, ""


class Generation(NamedTuple):
    """One generation, as this member sees it. Created from the response to JoinGroup."""

    number: int
    assignor: Assignor
    topics: frozenset[str]  # that this member subscribed to then
    watch: Watch | None  # the leader's; None for the others
    members: list[JoinGroupResponseMember]  # known to the leader alone
    is_given: bool  # the coordinator keeps the assignment that it has (KIP-814)
    leader: str = ""  # its member id
    yields: bool = False  # this member joined with partitions, and gives them up instead of taking new ones: `strategy`

    def outdated(self, topics: frozenset[str], cluster: Cluster) -> str | None:
        """Return why the group has to be rebalanced; None if it need not."""
        if self.topics != topics:
            return "the subscription changed"
        changed = [] if self.watch is None else self.watch.changed(cluster)
        return f"the partitions of {', '.join(changed)} changed" if changed else None
