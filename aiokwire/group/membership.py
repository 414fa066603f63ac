"""What a consumer and its group ask of each other, whichever protocol the group speaks. Nothing here does anything.

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
    """How a member takes part in its group; the consumer derives it from `ConsumerConfig`. Times in seconds."""

    group_id: str
    strategy: Strategy
    instance_id: str | None = None
    rack_id: str | None = None
    remote_assignor: str | None = None  # of the coordinator, with the consumer protocol; None: whichever it prefers
    session_timeout: float = 45.0
    heartbeat_interval: float = 3.0
    max_poll_interval: float = 300.0  # also how long the group waits for this member in a rebalance


class Host(Protocol):
    """The consumer's side. All of it runs on the consumer's loop, in the membership's task, one call at a time."""

    def owned(self) -> frozenset[TopicPartition]:
        """What is assigned now."""

    async def revoke(self, partitions: Collection[TopicPartition], deadline: float) -> None:
        """Give partitions up: return no more of their records, commit, call the listener, release them.

        `deadline` is on the loop's clock: the group continues without this member then.
        """

    async def lose(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions are gone already, and others may have them: do not commit; call the listener."""

    async def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Add partitions: look up positions, call the listener, start fetching. Also without any partition, at the
        end of each rebalance."""

    def fail(self, error: KafkaError, *, final: bool) -> None:
        """Have the reader's next await raise. Not `final`: the membership tries again when `record_poll` is called."""

    def progressed_at(self, now: float) -> float:
        """When the application last came for records or waited for them; `now` while it waits. Called at least at
        every heartbeat, since what the fast path hands over is noticed by looking."""


class Membership(Protocol):
    """A member of a group, driven by one background task."""

    commits: CommitGate  # held by each commit while it is on its way, so that it meets no join

    async def run(self) -> None:
        """The state machine, until it has left or is cancelled."""

    def subscribe(self, topics: frozenset[str]) -> None:
        """The subscription changed: rejoin."""

    def record_poll(self) -> None:
        """The application came for records: a member that left because it did not, or that was refused, joins again.
        Cheap: called at every await of a reader."""

    def rejoin(self, reason: str) -> None:
        """Have the group rebalanced (KIP-568)."""

    def refused(self, code: int, group: GroupMetadata) -> bool:
        """The coordinator refused a commit of `group`, the metadata that it was sent with. True: it may be sent again
        with newer metadata, after `commits` opens; False: the partitions are lost, and the member rejoins at once."""

    @property
    def metadata(self) -> GroupMetadata:
        """Group, member id, generation or epoch, instance id: for commits and transactions."""

    async def leave(self, timeout: float, *, reason: str) -> None:
        """Give everything up and leave, within `timeout` seconds whatever the coordinator does. A static member stays
        in the group until its session ends."""


def metadata_refresh_interval(topics: int) -> float:
    """Return how long to wait (seconds) before looking for added topics and partitions again. `topics`: how many the
    response names; a broker with thousands of them should not have to send it all the time."""
    return min(10.0, max(1.0, topics / 100))
