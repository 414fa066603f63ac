"""Requests and replies of group members, without wire formats. Used by handlers and coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from aiokwire.error_codes import ErrorCode

A = TypeVar("A")
B = TypeVar("B")

NO_GENERATION = -1
# Bytes of a name that a group's records can hold, with room for a member id that starts with it.
LONGEST_NAME = 2**15 - 1 - 64


class Client(NamedTuple):
    """The sender of a request, as stored in groups."""

    client_id: str
    host: str


class Join(NamedTuple):
    """JoinGroup."""

    group_id: str
    member_id: str
    instance_id: str | None
    client: Client
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]  # name and the member's metadata, best first
    session_timeout_ms: int
    rebalance_timeout_ms: int
    needs_known_id: bool = False  # a new member first receives its id and joins with it (KIP-394)
    may_skip_assignment: bool = False  # the version can ask a leader not to assign (KIP-814)


class JoinedMember(NamedTuple):
    """A member in the leader's response."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    """The reply to JoinGroup."""

    code: ErrorCode
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


class Sync(NamedTuple):
    """SyncGroup."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: dict[str, bytes]


class Synced(NamedTuple):
    """The reply to SyncGroup."""

    code: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


class Leaver(NamedTuple):
    """A member that leaves or is removed."""

    member_id: str
    instance_id: str | None


class Committer(NamedTuple):
    """The member or tool that commits offsets."""

    member_id: str
    instance_id: str | None
    epoch: int  # the generation, or the member's epoch
    version: int  # of the request
    transactional: bool = False


class Reply(Generic[A]):
    """A reply that is given at once or later; only the first one counts."""

    __slots__ = ("_answer", "_on_answer")

    def __init__(self) -> None:
        self._answer: A | None = None
        self._on_answer: Callable[[A], None] | None = None

    def give(self, answer: A) -> None:
        if self._answer is None:
            self._answer = answer
            if self._on_answer is not None:
                self._on_answer(answer)

    def get(self, shape: Callable[[A], B]) -> B | Awaitable[B]:
        """Return `shape` of the answer, or an awaitable of the answer."""
        if self._answer is not None:
            return shape(self._answer)
        future: asyncio.Future[B] = asyncio.get_running_loop().create_future()

        def on_answer(answer: A) -> None:
            if not future.done():  # cancelled if the client is gone
                future.set_result(shape(answer))

        self._on_answer = on_answer
        return future


def too_long(*names: str | None) -> bool:
    """Return whether a name is too long for a record: newer requests can carry longer names."""
    return any(name is not None and len(name) * 4 > LONGEST_NAME < len(name.encode()) for name in names)
