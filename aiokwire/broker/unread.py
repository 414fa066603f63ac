"""Bound what slow readers leave in memory: answers that were written and not read.

Kafka sends records straight from the file, so an unread answer costs it nothing; here it lies in a buffer.
A connection with unread answers gets no further one, so each holds one answer at most. All together are bounded by
`limit`: the less room there is, the fewer bytes a Fetch is answered with, down to `LEAST`. When that is not enough, the
connection that has not caught up for the longest time is closed; its client connects again and reads on.
"""

from __future__ import annotations

from typing import Protocol

LIMIT = 256 << 20  # bytes
LEAST = 1 << 20  # bytes that a Fetch may always be answered with
_PART = 4  # one answer takes at most this part of the room that is left


class SlowReader(Protocol):
    """A connection whose client does not keep up with its answers."""

    @property
    def unread(self) -> int:
        """Bytes that wait for the client."""
        ...

    def abort_unread(self, held: int, limit: int) -> None:
        """Drop the connection, because all slow readers together hold `held` bytes."""
        ...


class UnreadAnswers:
    """Keeps account of the slow readers."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._readers: dict[SlowReader, None] = {}  # the one that fell behind first comes first

    @property
    def size(self) -> int:
        """Bytes that slow readers hold."""
        return sum(reader.unread for reader in self._readers)

    def room(self) -> int:
        """The most bytes that a Fetch should be answered with now."""
        if not self._readers:
            return max(self.limit // _PART, LEAST)
        return max((self.limit - self.size) // _PART, LEAST)

    def add(self, reader: SlowReader) -> None:
        """A connection fell behind."""
        self._readers[reader] = None
        held = self.size
        while held > self.limit and len(self._readers) > 1:
            slowest = next(iter(self._readers))
            del self._readers[slowest]
            slowest.abort_unread(held, self.limit)
            held = self.size

    def discard(self, reader: SlowReader) -> None:
        """A connection caught up, or is gone."""
        self._readers.pop(reader, None)
