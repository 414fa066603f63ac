"""A group of the classic protocol: its members and its state, without I/O and clock.

`classic_protocol` changes it, `classic_decisions` checks requests against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aiokwire.broker.groups.requests import Client, Join, Joined, JoinedMember, Reply, Synced
from aiokwire.broker.groups.states import TRANSITIONS, ClassicEvent, ClassicState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ProtocolViolation
from aiokwire.machine import Machine
from aiokwire.protocol import decode_embedded

CONSUMER = "consumer"  # the protocol type of consumers


class ClassicMember:
    """One member."""

    __slots__ = (
        "assignment", "client", "instance_id", "is_new", "joining", "member_id", "protocols", "rebalance_timeout_ms",
        "session_timeout_ms", "syncing",
    )  # fmt: skip

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client: Client,
        protocols: tuple[tuple[str, bytes], ...],
        *,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        assignment: bytes = b"",
        is_new: bool = False,
    ) -> None:
        self.member_id: str = member_id
        self.instance_id: str | None = instance_id
        self.client: Client = client
        self.protocols: tuple[tuple[str, bytes], ...] = protocols
        self.session_timeout_ms: int = session_timeout_ms
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.assignment: bytes = assignment
        self.is_new: bool = is_new  # in its first join, which its client may abandon
        self.joining: Reply[Joined] | None = None  # of a JoinGroup in progress
        self.syncing: Reply[Synced] | None = None  # of a SyncGroup in progress

    def describe(self, asked: Join) -> None:
        """Set what a JoinGroup request of a known member may change."""
        self.protocols = asked.protocols
        self.client = asked.client
        self.session_timeout_ms = asked.session_timeout_ms
        self.rebalance_timeout_ms = asked.rebalance_timeout_ms

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for a protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def rename(self, member_id: str) -> None:
        self.member_id = member_id

    def assign(self, assignment: bytes) -> None:
        self.assignment = assignment

    def wait_join(self, reply: Reply[Joined] | None) -> None:
        """Set the JoinGroup that the member waits in, or None."""
        self.joining = reply

    def end_first_join(self) -> None:
        self.is_new = False

    def wait_sync(self, reply: Reply[Synced]) -> None:
        """Set the SyncGroup that the member waits in."""
        self.syncing = reply

    def answer_join(self, answer: Joined) -> None:
        """Respond to the member's JoinGroup, if it waits in one."""
        reply, self.joining = self.joining, None
        if reply is not None:
            reply.give(answer)

    def answer_sync(self, answer: Synced) -> None:
        """Respond to the member's SyncGroup, if it waits in one."""
        reply, self.syncing = self.syncing, None
        if reply is not None:
            reply.give(answer)

    def __repr__(self) -> str:
        waits = " joining" if self.joining else " syncing" if self.syncing else ""
        return f"<ClassicMember {self.member_id}{waits}>"


class ClassicGroup:
    """The members, generation and state of a group."""

    def __init__(self, group_id: str, changed_ms: int = -1) -> None:
        self.group_id: str = group_id
        self._machine = Machine(f"group {group_id}", TRANSITIONS, ClassicState.EMPTY)
        self.generation: int = 0
        self.protocol_type: str = ""  # none: only offsets were committed
        self.protocol: str | None = None
        self.leader: str | None = None
        self.changed_ms: int = changed_ms  # wall clock, of the last change of state
        self.members: dict[str, ClassicMember] = {}  # in the order of joining
        self.static: dict[str, str] = {}  # member ids by group instance id
        self.pending: dict[str, None] = {}  # ids sent with MEMBER_ID_REQUIRED and not used yet
        self.unsynced: dict[str, None] = {}  # members of this generation that have sent no SyncGroup yet
        # During the wait for the first members of an empty group: the milliseconds left for it.
        self.initial_ms: int | None = None
        self.grew: bool = False  # since that wait last started

    @property
    def state(self) -> ClassicState:
        return self._machine.state

    def move(self, event: ClassicEvent, now_ms: int) -> None:
        """Move to the next state by the table.

        Raises: InvalidTransition.
        """
        self._machine.fire(event)
        self.changed_ms = now_ms

    def restore(self, state: ClassicState) -> None:
        """Set a state that was logged."""
        self._machine = Machine(f"group {self.group_id}", TRANSITIONS, state)

    def set_logged(
        self, generation: int, protocol_type: str, protocol: str | None, leader: str | None, changed_ms: int
    ) -> None:
        """Set the fields of the group's record."""
        self.generation = generation
        self.protocol_type = protocol_type
        self.protocol = protocol
        self.leader = leader
        self.changed_ms = changed_ms

    def named(self, group_id: str) -> ClassicGroup:
        """Set the group's id, which the value of a record does not contain."""
        self.group_id = group_id
        self.restore(self.state)
        return self

    # --- rebalance ----------------------------------------------------------------------------------------------------

    def allow_initial_wait(self, is_allowed: bool) -> None:
        """Let the wait for the first members take as long as their rebalance timeout, or end it."""
        self.initial_ms = self.rebalance_timeout_ms if is_allowed else None

    def begin_initial_wait(self, delay_ms: int) -> None:
        """Spend part of the time for the first members."""
        self.initial_ms = (self.initial_ms or 0) - delay_ms
        self.grew = False

    def begin_generation(self) -> None:
        """Start the next generation with the current members."""
        self.initial_ms = None
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.unsynced = dict.fromkeys(self.members)

    # --- members ------------------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Add a member; the first one leads."""
        if not self.members:
            self.protocol_type = protocol_type
        self.leader = self.leader or member.member_id
        self.pending.pop(member.member_id, None)
        self.members[member.member_id] = member
        self.grew = True
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member, and respond to its requests."""
        member = self.members.pop(member_id)
        self.unsynced.pop(member_id, None)
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        member.answer_join(Joined(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        member.answer_sync(Synced(ErrorCode.UNKNOWN_MEMBER_ID))

    def replace_static(self, instance_id: str, member_id: str) -> ClassicMember:
        """Give the member of an instance a new id; the old id is fenced."""
        old_id = self.static[instance_id]
        member = self.members[old_id]
        member.answer_join(Joined(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.answer_sync(Synced(ErrorCode.FENCED_INSTANCE_ID))
        member.rename(member_id)
        self.members = {one.member_id: one for one in self.members.values()}
        self.static[instance_id] = member_id
        if self.unsynced.pop(old_id, self) is None:
            self.unsynced[member_id] = None
        if self.leader == old_id:
            self.leader = member_id
        return member

    @property
    def joining(self) -> Iterator[ClassicMember]:
        """The members that have joined this rebalance."""
        return (member for member in self.members.values() if member.joining is not None)

    @property
    def all_joined(self) -> bool:
        """Whether every member has joined."""
        return not self.pending and all(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The greatest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect(self) -> bool:
        """Make sure that the leader has joined; return False if no member has."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.joining is None:
            successor = next(self.joining, None)
            if successor is None:
                return False
            self.leader = successor.member_id
        return True

    # --- protocols ----------------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Return whether a member with these protocols may join."""
        names = set(names)
        if not self.members:
            return bool(protocol_type) and bool(names)
        return protocol_type == self.protocol_type and bool(names & self._candidates())

    def _candidates(self) -> set[str]:
        """Return the protocols that every member supports."""
        every = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*every) if every else set()

    def select_protocol(self) -> str:
        """Return the protocol that most members prefer, among those that all support."""
        candidates = self._candidates()
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(name for name, _ in member.protocols if name in candidates)
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])

    @property
    def reads_topics(self) -> bool:
        """Whether the members are consumers, which subscribe to topics."""
        return self.protocol_type == CONSUMER

    def subscribed_topics(self) -> set[str] | None:
        """Return the topics that the members subscribe to, None if they are unknown."""
        if not self.reads_topics or self.protocol is None:
            return None
        # imported here: few brokers need it
        from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(decode_embedded(member.metadata(self.protocol), ConsumerProtocolSubscription).topics)
            except ProtocolViolation:
                return None
        return topics

    # --- responses ----------------------------------------------------------------------------------------------------

    def joined(self, member: ClassicMember, *, skip_assignment: bool = False) -> Joined:
        """Return the JoinGroup response for a member of this generation."""
        return Joined(
            ErrorCode.NONE,
            member.member_id,
            self.generation,
            self.protocol_type or None,
            self.protocol,
            self.leader or "",
            self.described_members() if member.member_id == self.leader else (),
            skip_assignment,
        )

    def described_members(self) -> tuple[JoinedMember, ...]:
        """Return the members with their metadata, for the leader."""
        return tuple(
            JoinedMember(one.member_id, one.instance_id, one.metadata(self.protocol)) for one in self.members.values()
        )

    def synced(self, member: ClassicMember) -> Synced:
        """Return the SyncGroup response for a member."""
        return Synced(ErrorCode.NONE, member.assignment, self.protocol_type or None, self.protocol)

    @property
    def never_had_members(self) -> bool:
        """Whether the group has never had a member."""
        return self.generation == 0 and not self.members and not self.pending

    def __repr__(self) -> str:
        return f"<ClassicGroup {self.group_id} {self.state.value}, generation {self.generation} of {len(self.members)}>"
