"""A group of the classic protocol: its members and what follows from them. No I/O, no time.

`classic_protocol` moves it, `decisions` judges requests by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aiokwire.broker.groups.requests import Client, Joined, JoinedMember, Reply, Synced
from aiokwire.broker.groups.states import TRANSITIONS, ClassicEvent, ClassicState
from aiokwire.error_codes import ErrorCode
from aiokwire.errors import ProtocolViolation
from aiokwire.machine import Machine
from aiokwire.protocol import decode_embedded

CONSUMER = "consumer"  # the protocol type of those who subscribe to topics


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
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client = client
        self.protocols = protocols
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.assignment = assignment
        self.is_new = False  # it waits in its first join: its client may give up, and then it must go
        self.joining: Reply[Joined] | None = None  # a JoinGroup that is not answered yet
        self.syncing: Reply[Synced] | None = None  # likewise SyncGroup

    def metadata(self, protocol: str | None) -> bytes:
        """What it said about a protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def answer_join(self, answer: Joined) -> None:
        """Answer its JoinGroup where one waits."""
        reply, self.joining = self.joining, None
        if reply is not None:
            reply.give(answer)

    def answer_sync(self, answer: Synced) -> None:
        """Answer its SyncGroup where one waits."""
        reply, self.syncing = self.syncing, None
        if reply is not None:
            reply.give(answer)

    def __repr__(self) -> str:
        waits = " joining" if self.joining else " syncing" if self.syncing else ""
        return f"<ClassicMember {self.member_id}{waits}>"


class ClassicGroup:
    """Members, a generation, and where the group is."""

    def __init__(self, group_id: str, changed_ms: int = -1) -> None:
        self.group_id = group_id
        self._machine = Machine(f"group {group_id}", TRANSITIONS, ClassicState.EMPTY)
        self.generation = 0
        self.protocol_type = ""  # none yet: only offsets were committed
        self.protocol: str | None = None
        self.leader: str | None = None
        self.changed_ms = changed_ms  # wall clock, of the last change of state
        self.members: dict[str, ClassicMember] = {}  # in the order they came
        self.static: dict[str, str] = {}  # member ids by group instance id
        self.pending: dict[str, None] = {}  # ids that were given out and not used yet
        self.unsynced: dict[str, None] = {}  # members of this generation that did not ask for their assignment yet
        # While the first members of an empty group are waited for: milliseconds that may still be spent on it.
        self.initial_ms: int | None = None
        self.grew = False  # since that wait was last begun

    @property
    def state(self) -> ClassicState:
        return self._machine.state

    def fire(self, event: ClassicEvent, now_ms: int) -> None:
        """Move by the table.

        Raises: InvalidTransition.
        """
        self._machine.fire(event)
        self.changed_ms = now_ms

    def restore(self, state: ClassicState) -> None:
        """Be in a state that was logged."""
        self._machine.state = state

    def named(self, group_id: str) -> ClassicGroup:
        """Itself, once it is known which group it is: the value of a record does not say."""
        self.group_id = group_id
        self._machine.name = f"group {group_id}"
        return self

    # --- members ------------------------------------------------------------------------------------------------------

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        """Take a member in; the first one leads."""
        if not self.members:
            self.protocol_type = protocol_type
        self.leader = self.leader or member.member_id
        self.pending.pop(member.member_id, None)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Let a member go; whatever it waits for is answered."""
        member = self.members.pop(member_id)
        self.unsynced.pop(member_id, None)
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        member.answer_join(Joined(ErrorCode.UNKNOWN_MEMBER_ID, member_id))
        member.answer_sync(Synced(ErrorCode.UNKNOWN_MEMBER_ID))

    def replace_static(self, instance_id: str, member_id: str) -> ClassicMember:
        """Give the member of an instance a new id: whoever still uses the old one is fenced."""
        old_id = self.static[instance_id]
        member = self.members[old_id]
        member.answer_join(Joined(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.answer_sync(Synced(ErrorCode.FENCED_INSTANCE_ID))
        member.member_id = member_id
        self.members = {one.member_id: one for one in self.members.values()}
        self.static[instance_id] = member_id
        if self.unsynced.pop(old_id, self) is None:
            self.unsynced[member_id] = None
        if self.leader == old_id:
            self.leader = member_id
        return member

    @property
    def joining(self) -> Iterator[ClassicMember]:
        """Those that joined this rebalance."""
        return (member for member in self.members.values() if member.joining is not None)

    @property
    def all_joined(self) -> bool:
        """Whether nobody is waited for any more."""
        return not self.pending and all(member.joining is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long a rebalance waits for members: as long as the slowest of them asked for."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect(self) -> bool:
        """Make sure that a member leads that joined; false when nobody did."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.joining is None:
            successor = next(self.joining, None)
            if successor is None:
                return False
            self.leader = successor.member_id
        return True

    # --- protocols ----------------------------------------------------------------------------------------------------

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with these protocols could be one of the group."""
        names = set(names)
        if not self.members:
            return bool(protocol_type) and bool(names)
        return protocol_type == self.protocol_type and bool(names & self._candidates())

    def _candidates(self) -> set[str]:
        """The protocols that every member has."""
        every = [{name for name, _ in member.protocols} for member in self.members.values()]
        return set.intersection(*every) if every else set()

    def select_protocol(self) -> str:
        """The protocol that most members like best, of those that all of them have."""
        candidates = self._candidates()
        votes: dict[str, int] = {}
        for member in self.members.values():
            vote = next(name for name, _ in member.protocols if name in candidates)
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: votes[name])

    @property
    def reads_topics(self) -> bool:
        """Whether its members subscribe to topics, as consumers do; others (Connect) share out what they like."""
        return self.protocol_type == CONSUMER

    def subscribed_topics(self) -> set[str] | None:
        """The topics that the members want, None where that cannot be known."""
        if not self.reads_topics or self.protocol is None:
            return None
        # loaded here: most brokers never need it
        from aiokwire.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

        topics: set[str] = set()
        for member in self.members.values():
            try:
                topics.update(decode_embedded(member.metadata(self.protocol), ConsumerProtocolSubscription).topics)
            except ProtocolViolation:
                return None
        return topics

    # --- answers ------------------------------------------------------------------------------------------------------

    def joined(self, member: ClassicMember, *, skip_assignment: bool = False) -> Joined:
        """The answer for a member of this generation."""
        return Joined(
            ErrorCode.NONE,
            member.member_id,
            self.generation,
            self.protocol_type or None,
            self.protocol,
            self.leader or "",
            self.told_members() if member.member_id == self.leader else (),
            skip_assignment,
        )

    def told_members(self) -> tuple[JoinedMember, ...]:
        """What the leader assigns by."""
        return tuple(
            JoinedMember(one.member_id, one.instance_id, one.metadata(self.protocol)) for one in self.members.values()
        )

    def synced(self, member: ClassicMember) -> Synced:
        """A member's assignment."""
        return Synced(ErrorCode.NONE, member.assignment, self.protocol_type or None, self.protocol)

    @property
    def never_had_members(self) -> bool:
        """Whether it stands for nothing but offsets."""
        return self.generation == 0 and not self.members and not self.pending

    def __repr__(self) -> str:
        return f"<ClassicGroup {self.group_id} {self.state.value}, generation {self.generation} of {len(self.members)}>"
