"""The requests in flight on one connection: correlation ids, order, deadlines. No I/O.

A broker responds to the requests of a connection in order (Kafka mutes a channel while it handles
one), so a response always belongs to the oldest entry; anything else is a broken peer. An entry
whose caller was cancelled stays until its response is received.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from aiokwire.errors import ProtocolViolation
from aiokwire.protocol import Response

CORRELATION_MASK = 0x7FFFFFFF


class Receiver(Protocol):
    """Receives the outcome of a request, in the turn of the loop in which it arrives.

    Usually a future, whose waiters resume one turn later.
    """

    def done(self) -> bool:
        """Return whether the outcome is no longer awaited."""
        ...

    def set_result(self, result: Any, /) -> None:
        """Pass the response."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Pass the error instead of a response."""
        ...


class InFlight:
    """One request in flight. `response_type` None: the caller takes the frame undecoded."""

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
        self.correlation_id: int = correlation_id
        self.api: str = api
        self.version: int = version
        self.response_type: type[Response] | None = response_type
        self.receiver: Receiver = receiver
        self.sent_at: float = sent_at  # the loop's clock, seconds
        self.deadline: float = deadline  # the loop's clock, seconds

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
        """Return the correlation id for the next request; ids wrap after 2^31 - 1."""
        taken = self._next_id
        self._next_id = (taken + 1) & CORRELATION_MASK
        return taken

    def add(self, entry: InFlight) -> None:
        """Add a request that was written."""
        self._entries.append(entry)

    def oldest(self) -> InFlight | None:
        """Return the entry that the next response belongs to, if any."""
        return self._entries[0] if self._entries else None

    def take(self, correlation_id: int) -> InFlight:
        """Remove and return the entry that a response belongs to.

        Raises: ProtocolViolation: no request is in flight, or the response is not the oldest's.
        """
        entries = self._entries
        if not entries:
            raise ProtocolViolation(
                f"a response with correlation id {correlation_id} arrived, but no request is waiting for one"
            )
        entry = entries[0]
        if entry.correlation_id != correlation_id:
            raise ProtocolViolation(
                f"a response out of order: got correlation id {correlation_id}, expected {entry.correlation_id} "
                f"({entry.api} v{entry.version}), the first of {len(entries)}"
            )
        return entries.popleft()

    def earliest_deadline(self) -> float | None:
        """Return the earliest deadline, not always the oldest entry's: timeouts differ."""
        return min((entry.deadline for entry in self._entries), default=None)

    def latest_deadline(self) -> float | None:
        """Return the latest deadline, by which every entry has its outcome."""
        return max((entry.deadline for entry in self._entries), default=None)

    def expired(self, now: float) -> list[InFlight]:
        """Return the entries whose deadline has passed; they keep their places in the queue."""
        return [entry for entry in self._entries if entry.deadline <= now]

    def drain(self) -> list[InFlight]:
        """Remove and return all entries: the connection was lost."""
        entries = list(self._entries)
        self._entries.clear()
        return entries
