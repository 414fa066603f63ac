"""The requests of one connection that wait for an answer: correlation ids, order, deadlines. No I/O.

A broker answers each connection in the order of its requests (Kafka mutes a channel while it handles one), so the
answer that comes always belongs to the oldest entry; anything else is a broken peer. An entry whose caller was
cancelled stays until its answer comes.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from aiokwire.errors import ProtocolViolation
from aiokwire.protocol import Response

CORRELATION_MASK = 0x7FFFFFFF


class Receiver(Protocol):
    """Who is told what became of a request, within the turn of the loop in which that is known: usually a future, which
    tells those who wait for it a turn later."""

    def done(self) -> bool:
        """Whether nobody waits any more."""
        ...

    def set_result(self, result: Any, /) -> None:
        """The answer."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Why there is none."""
        ...


class InFlight:
    """One request on its way. `response_type` None: the caller takes the frame undecoded."""

    __slots__ = ("api", "correlation_id", "deadline", "receiver", "response_type", "sent_at", "version")

    def __init__(
        self,
        correlation_id: int,
        api: str,
        version: int,
        response_type: type[Response] | None,
        receiver: Receiver,
        sent_at: float,
        deadline: float,
    ) -> None:
        self.correlation_id = correlation_id
        self.api = api
        self.version = version
        self.response_type = response_type
        self.receiver = receiver
        self.sent_at = sent_at  # the loop's clock, seconds
        self.deadline = deadline  # the loop's clock, seconds

    def __repr__(self) -> str:
        return f"<{self.api} v{self.version} correlation id {self.correlation_id}>"


class InFlightQueue:
    """Entries in the order in which they were sent."""

    __slots__ = ("_entries", "_next_id")

    def __init__(self, first_id: int = 0) -> None:
        self._entries: deque[InFlight] = deque()
        self._next_id = first_id & CORRELATION_MASK

    def __len__(self) -> int:
        return len(self._entries)

    def next_id(self) -> int:
        """The correlation id for the next request; they wrap after 2^31 - 1."""
        taken = self._next_id
        self._next_id = (taken + 1) & CORRELATION_MASK
        return taken

    def add(self, entry: InFlight) -> None:
        """A request was written."""
        self._entries.append(entry)

    def take(self, correlation_id: int) -> InFlight:
        """The entry that an answer belongs to, removed.

        Raises: ProtocolViolation: nothing waits, or the answer is not the oldest entry's.
        """
        entries = self._entries
        if not entries:
            raise ProtocolViolation(f"an answer with correlation id {correlation_id} came, but nothing was asked")
        entry = entries[0]
        if entry.correlation_id != correlation_id:
            raise ProtocolViolation(
                f"an answer out of order: correlation id {correlation_id} came, {entry.correlation_id} "
                f"({entry.api} v{entry.version}) was next of {len(entries)}"
            )
        return entries.popleft()

    def earliest_deadline(self) -> float | None:
        """The deadline that ends first (not always the oldest entry's: each request has its own timeout)."""
        return min((entry.deadline for entry in self._entries), default=None)

    def expired(self, now: float) -> list[InFlight]:
        """Entries whose deadline has ended; they stay in the queue, since their place in the order does."""
        return [entry for entry in self._entries if entry.deadline <= now]

    def drain(self) -> list[InFlight]:
        """Every entry, removed: the connection is gone."""
        entries = list(self._entries)
        self._entries.clear()
        return entries
