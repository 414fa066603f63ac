"""A group of the consumer protocol (KIP-848): members, epochs, target assignment, owners. No I/O.

Members are immutable: each step creates a new version, which is logged before it replaces the old.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokwire.broker.groups.requests import Client
from aiokwire.broker.groups.states import ConsumerState, ReconciliationState

JOINING = 0  # the epoch of a member that joins or rejoins
LEAVING = -1  # the epoch of a member that leaves
LEAVING_FOR_A_WHILE = -2  # the epoch of a static member that will return
NO_TIMEOUT = -1


class Part(NamedTuple):
    """A partition, by its topic's id."""

    topic_id: bytes
    number: int


Parts = frozenset[Part]
NOTHING: Parts = frozenset()


def by_topic(parts: Iterable[Part]) -> dict[bytes, list[int]]:
    """Return the numbers of partitions by topic id, in order."""
    found: dict[bytes, list[int]] = {}
    for part in sorted(parts):
        found.setdefault(part.topic_id, []).append(part.number)
    return found


@dataclasses.dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member."""

    member_id: str
    client: Client
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    topics: tuple[str, ...] = ()  # sorted
    regex: str | None = None
    assignor: str | None = None
    epoch: int = JOINING
    previous_epoch: int = JOINING
    state: ReconciliationState = ReconciliationState.STABLE
    # The assigned partitions, and those to be revoked, each with the epoch of its assignment.
    assigned: Mapping[Part, int] = dataclasses.field(default_factory=dict)
    revoking: Mapping[Part, int] = dataclasses.field(default_factory=dict)

    @property
    def described(self) -> tuple[object, ...]:
        """The member's description: the fields of its `KeyType.MEMBER` record."""
        return (
            self.client, self.instance_id, self.rack_id, self.rebalance_timeout_ms, self.topics, self.regex,
            self.assignor,
        )  # fmt: skip

    @property
    def placed(self) -> tuple[object, ...]:
        """The current assignment: the fields of its `KeyType.CURRENT` record."""
        return (self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking)

    def is_at(self, epoch: int) -> bool:
        """Return whether the member has its whole target of that epoch."""
        return self.state is ReconciliationState.STABLE and self.epoch == epoch

    def __repr__(self) -> str:
        return f"<ConsumerMember {self.member_id} {self.state.name} at {self.epoch}>"


class ConsumerGroup:
    """The members of a group and their target assignment."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch: int = 0  # rises with every change of members, subscriptions or topics
        self.metadata_hash: int = 0  # of the subscribed topics at that epoch
        self.assignment_epoch: int = 0  # the group's epoch when the target was computed
        self.assignor: str = ""  # of the target; not logged, as in Kafka
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}  # member ids by group instance id
        self.target: dict[str, Parts] = {}
        self.owners: dict[Part, str] = {}  # member ids
        self.regexes: dict[str, tuple[str, ...]] = {}  # the topics that match each pattern
        self.seen_topics: int = -1  # the version of the topics for which the hash and the patterns were computed
        self.emptied_ms: int = -1  # wall clock, when the last member left
        self.dead: bool = False

    @property
    def state(self) -> ConsumerState:
        if self.dead:
            return ConsumerState.DEAD
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if all(member.is_at(self.assignment_epoch) for member in self.members.values()):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash

    def set_target_epoch(self, epoch: int, assignor: str = "") -> None:
        """Set the epoch of the target, and the assignor that computed it if it is known."""
        self.assignment_epoch = epoch
        self.assignor = assignor

    def set_patterns(self, regexes: dict[str, tuple[str, ...]], seen_topics: int) -> None:
        """Set the topics that match each pattern, at a version of all topics."""
        self.regexes = regexes
        self.seen_topics = seen_topics

    def end(self) -> None:
        self.dead = True

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or replace it by its new version."""
        self._disown(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        for part in (*member.assigned, *member.revoking):
            self.owners[part] = member.member_id

    def remove(self, member_id: str, now_ms: int) -> None:
        """Remove a member and its assignment."""
        self._disown(member_id)
        member = self.members.pop(member_id, None)
        self.seen_topics = -1  # its subscription is gone
        self.target.pop(member_id, None)
        if member is not None and self.static.get(member.instance_id or "") == member_id:
            del self.static[member.instance_id or ""]
        if not self.members:
            self.emptied_ms = now_ms

    def _disown(self, member_id: str) -> None:
        member = self.members.get(member_id)
        if member is not None:
            for part in (*member.assigned, *member.revoking):
                if self.owners.get(part) == member_id:
                    del self.owners[part]

    def topics_of(self, member: ConsumerMember) -> set[str]:
        """Return the topics that a member subscribes to by name or pattern."""
        return {*member.topics, *self.regexes.get(member.regex or "", ())}

    def subscribed_topics(self) -> set[str]:
        """Return the topics that any member subscribes to."""
        return {name for member in self.members.values() for name in self.topics_of(member)}

    def __repr__(self) -> str:
        return f"<ConsumerGroup {self.group_id} {self.state.value}, epoch {self.epoch} of {len(self.members)}>"


def preferred_assignor(members: Iterable[ConsumerMember], default: str) -> str:
    """Return the assignor that most members ask for."""
    votes: dict[str, int] = {}
    for member in members:
        if member.assignor:
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    return max(votes, key=lambda name: votes[name], default=default)
