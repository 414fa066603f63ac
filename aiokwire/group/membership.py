"""The interfaces between a consumer and its membership in a group, for both protocols.

consumer (Host)  <-- revoke, lose, assign, fail --  Membership (classic, KIP-848)
                 -- subscribe, record_poll, leave -->
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Protocol

from aiokwire.errors import KafkaError
from aiokwire.group.commit_gate import CommitGate
from aiokwire.group.strategy import Strategy
from aiokwire.types import GroupMetadata, TopicPartition


@dataclasses.dataclass(frozen=True, slots=True)
class MemberOptions:
    """The options of a member, derived from `ConsumerConfig`. Times in seconds."""

    group_id: str
    strategy: Strategy
    instance_id: str | None = None
    rack_id: str | None = None
    remote_assignor: str | None = None  # of the coordinator, with the consumer protocol; None: its default
    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    max_poll_interval: float = 300.0
    rebalance_timeout: float = 300.0  # how long the group waits for this member in a rebalance


class Host(Protocol):
    """The consumer's side. Called on its loop, in the membership's task, one call at a time."""

    def owned(self) -> frozenset[TopicPartition]:
        """Return the partitions that are assigned now."""

    async def revoke(self, partitions: Collection[TopicPartition], deadline: float) -> None:
        """Revoke partitions: return no more of their records, commit, call the listener, release
        them.

        `deadline`: on the loop's clock; afterwards the group continues without this member.
        """

    async def lose(self, partitions: Collection[TopicPartition]) -> None:
        """Drop partitions that others may have already: call the listener, do not commit."""

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Add partitions: look up positions, call the listener, start fetching. Called at the end
        of each rebalance, also without partitions."""

    def fail(self, error: KafkaError, *, final: bool) -> None:
        """Raise the error in the next read. Not `final`: then the member joins again."""

    def progressed_at(self, now: float) -> float:
        """Return when the application last requested records or waited for them; `now` while it
        waits. Called at least at every heartbeat, because the fast path does not report
        progress."""


class Membership(Protocol):
    """A member of a group, driven by one background task."""

    commits: CommitGate  # passed by each commit, so that no join overlaps it

    async def run(self) -> None:
        """Run the state machine until the member has left or is cancelled."""

    def subscribe(self, topics: frozenset[str]) -> None:
        """Rejoin with a changed subscription."""

    def record_poll(self) -> None:
        """Record a read: a member that is IDLE joins again. Cheap: called at every await."""

    def rejoin(self, reason: str) -> None:
        """Trigger a rebalance (KIP-568)."""

    def refused(self, code: int, group: GroupMetadata) -> bool:
        """Handle a refused commit; `group`: the metadata it was sent with. Return True if the
        commit may be retried with newer metadata, after `commits` opens; False if the partitions
        are lost, and the member rejoins at once."""

    @property
    def metadata(self) -> GroupMetadata:
        """Group, generation or epoch, member id, instance id: for commits and transactions."""

    async def leave(self, timeout: float, *, reason: str) -> None:
        """Give up all partitions and leave, within `timeout` seconds even without a coordinator. A
        static member stays in the group until its session ends."""


class CurrentMembership:
    """The membership of a consumer at this time, for the parts that report reads and commit."""

    def __init__(self) -> None:
        self.member: Membership | None = None  # from its start until it has left the group

    def begin(self, member: Membership) -> None:
        """Use `member` from now on."""
        self.member = member

    def end(self) -> None:
        """The member has left: the consumer reads and commits as one that is not a member."""
        self.member = None


def metadata_refresh_interval(topics: int) -> float:
    """Return the pause (seconds) between two searches for new topics and partitions. `topics`:
    their count in the response; a response with thousands of topics should not be requested
    often."""
    return min(10.0, max(1.0, topics / 100))
