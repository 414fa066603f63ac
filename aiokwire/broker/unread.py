"""Bounds the memory that slow readers hold: responses that were written and not read.

Kafka sends records straight from the file, so an unread response costs it nothing; here it is in a buffer. A connection
with an unread response handles no further request, so each holds at most one. All together are bounded by `limit`: the
less room there is, the smaller the Fetch responses, down to `LEAST` bytes. If that is not enough, the connection that
fell behind first is closed; its client reconnects and continues.
"""

from __future__ import annotations

from typing import Protocol

LIMIT = 256 << 20  # bytes
LEAST = 1 << 20  # bytes that a Fetch response may always have
_PART = 4  # one response takes at most this fraction of the room that is left


class SlowReader(Protocol):
    """A connection whose client does not keep up with its responses."""

    @property
    def unread(self) -> int:
        """Bytes that wait for the client."""
        ...

    def abort_unread(self, held: int, limit: int) -> None:
        """Drop the connection, because all slow readers together hold `held` bytes."""
        ...


class UnreadAnswers:
    """The slow readers."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._readers: dict[SlowReader, None] = {}  # the one that fell behind first comes first

    @property
    def size(self) -> int:
        """Bytes that slow readers hold."""
        return sum(reader.unread for reader in self._readers)

    def room(self) -> int:
        """Return the limit in bytes for a Fetch response now."""
        if not self._readers:
            return max(self.limit // _PART, LEAST)
        return max((self.limit - self.size) // _PART, LEAST)

    def add(self, reader: SlowReader) -> None:
        """Add a connection that fell behind; close the slowest ones if all hold too much."""
        self._readers[reader] = None
        held = self.size
        while held > self.limit and len(self._readers) > 1:
            slowest = next(iter(self._readers))
            del self._readers[slowest]
            slowest.abort_unread(held, self.limit)
            held = self.size

    def discard(self, reader: SlowReader) -> None:
        """Remove a connection that caught up, or is closed."""
        self._readers.pop(reader, None)
