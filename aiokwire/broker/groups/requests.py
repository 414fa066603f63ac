"""What members ask and are answered, without the wire: what the handlers and the coordinator talk in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from aiokwire.error_codes import ErrorCode

A = TypeVar("A")
B = TypeVar("B")

NO_GENERATION = -1
# Bytes of a name that the records of groups can hold, with room for the member id that is made of it.
LONGEST_NAME = 2**15 - 1 - 64


class Client(NamedTuple):
    """Who sends a request, as groups remember it."""

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
    needs_known_id: bool = False  # a new member first gets its id, and joins with it (KIP-394)
    may_skip_assignment: bool = False  # it understands that a leader need not assign anew (KIP-814)


class JoinedMember(NamedTuple):
    """What the leader learns of a member."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class Joined(NamedTuple):
    """The answer to JoinGroup."""

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
    """The answer to SyncGroup."""

    code: ErrorCode
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol: str | None = None


class Leaver(NamedTuple):
    """One member that leaves, or is made to."""

    member_id: str
    instance_id: str | None


class Committer(NamedTuple):
    """In whose name offsets are committed or fetched."""

    member_id: str
    instance_id: str | None
    epoch: int  # the generation, or the member's epoch
    version: int  # of the request
    transactional: bool = False


class Reply(Generic[A]):
    """An answer that may come at once or later; only the first one counts."""

    __slots__ = ("_answer", "_tell")

    def __init__(self) -> None:
        self._answer: A | None = None
        self._tell: Callable[[A], None] | None = None  # who waits

    def give(self, answer: A) -> None:
        """Answer."""
        if self._answer is None:
            self._answer = answer
            if self._tell is not None:
                self._tell(answer)

    def get(self, shape: Callable[[A], B]) -> B | Awaitable[B]:
        """What `shape` makes of the answer, to be awaited where it is not there yet."""
        if self._answer is not None:
            return shape(self._answer)
        future: asyncio.Future[B] = asyncio.get_running_loop().create_future()

        def tell(answer: A) -> None:
            if not future.done():  # its client may be gone
                future.set_result(shape(answer))

        self._tell = tell
        return future


def too_long(*names: str | None) -> bool:
    """Whether a name is longer than a record can hold: newer requests carry longer ones."""
    return any(name is not None and len(name) * 4 > LONGEST_NAME < len(name.encode()) for name in names)
