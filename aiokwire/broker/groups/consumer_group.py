"""A group of the consumer protocol (KIP-848): members, epochs, the target assignment and who owns what now. No I/O.

A member is never changed: each step makes the next one, which is logged before it takes the place of the last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokwire.broker.groups.requests import Client
from aiokwire.broker.groups.states import ConsumerState, ReconciliationState

JOINING = 0  # the epoch of who joins, or joins again
LEAVING = -1  # the epoch of who leaves
LEAVING_FOR_A_WHILE = -2  # the epoch of a static member that comes back
NO_TIMEOUT = -1


class Part(NamedTuple):
    """A partition, by its topic's id."""

    topic_id: bytes
    number: int


Parts = frozenset[Part]
NOTHING: Parts = frozenset()


def by_topic(parts: Iterable[Part]) -> dict[bytes, list[int]]:
    """The numbers of partitions by their topic, in order."""
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
    # What it has, and what it has and must give up, each with the epoch at which it came to it.
    assigned: Mapping[Part, int] = dataclasses.field(default_factory=dict)
    revoking: Mapping[Part, int] = dataclasses.field(default_factory=dict)

    @property
    def described(self) -> tuple[object, ...]:
        """What it said of itself: the part that is kept in a record of its own."""
        return (
            self.client, self.instance_id, self.rack_id, self.rebalance_timeout_ms, self.topics, self.regex,
            self.assignor,
        )  # fmt: skip

    @property
    def placed(self) -> tuple[object, ...]:
        """How far it is: the part that is kept in another record."""
        return (self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking)

    def is_at(self, epoch: int) -> bool:
        """Whether it has all that the target of that epoch gives it."""
        return self.state is ReconciliationState.STABLE and self.epoch == epoch

    def __repr__(self) -> str:
        return f"<ConsumerMember {self.member_id} {self.state.name} at {self.epoch}>"


class ConsumerGroup:
    """All members, and what they are to have."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0  # goes up with every change of members, subscriptions or topics
        self.metadata_hash = 0  # of the topics that are subscribed to, as of that epoch
        self.assignment_epoch = 0  # the group's epoch when the target was computed
        self.assignor = ""  # that computed it; not logged, as in Kafka
        self.members: dict[str, ConsumerMember] = {}
        self.static: dict[str, str] = {}  # member ids by group instance id
        self.target: dict[str, Parts] = {}
        self.owners: dict[Part, str] = {}  # member ids
        self.regexes: dict[str, tuple[str, ...]] = {}  # the topics that each pattern stands for
        self.seen_topics = -1  # the version of all topics that the hash and the patterns are of
        self.emptied_ms = -1  # wall clock, since when there is no member
        self.dead = False

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

    def put(self, member: ConsumerMember) -> None:
        """Set a member in force, new or changed."""
        self._disown(member.member_id)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id
        for part in (*member.assigned, *member.revoking):
            self.owners[part] = member.member_id

    def remove(self, member_id: str, now_ms: int) -> None:
        """Let a member go, with what it has."""
        self._disown(member_id)
        member = self.members.pop(member_id, None)
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
        """The names that a member subscribes to, those of its pattern included."""
        return {*member.topics, *self.regexes.get(member.regex or "", ())}

    def subscribed_topics(self) -> set[str]:
        """The names that any member subscribes to."""
        return {name for member in self.members.values() for name in self.topics_of(member)}

    def __repr__(self) -> str:
        return f"<ConsumerGroup {self.group_id} {self.state.value}, epoch {self.epoch} of {len(self.members)}>"


def preferred_assignor(members: Iterable[ConsumerMember], default: str) -> str:
    """The assignor that most members ask for."""
    votes: dict[str, int] = {}
    for member in members:
        if member.assignor:
            votes[member.assignor] = votes.get(member.assignor, 0) + 1
    return max(votes, key=lambda name: votes[name], default=default)
