"""Limits for peers: connections, log lines, memory of unread responses.

Warnings are a few per address and minute: a hostile client must not fill the disk. An error that
lasts, such as a full disk, meets every request: it is logged on change and every 30 seconds.

Kafka sends records straight from files, so an unread response costs it nothing; here it is
buffered. A connection with an unread response handles no further request: each holds at most one.
All are bounded by `limit`: the less room, the smaller the Fetch responses, down to `LEAST` bytes.
If too little, the connection that fell behind first is closed; its client reconnects and continues.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from aiokwire._text import printable
from aiokwire.broker.configs import BrokerConfigs

logger: logging.Logger = logging.getLogger(__name__)

PER_WINDOW = 5  # lines for one address
WINDOW = 60.0  # seconds
REPEAT_AFTER = 30.0  # seconds until an unchanged error is logged again
MOST_SUBJECTS = 1000  # whose last error is kept
MOST_ADDRESSES = 1000  # that have their own count; the others share one
_OTHERS = "other addresses"
LIMIT = 256 << 20  # bytes
LEAST = 1 << 20  # bytes that a Fetch response may always have
_PART = 4  # one response takes at most this fraction of the room that is left


class PeerLog:
    """Logs errors of peers, with everything that they sent escaped."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # warnings of the current window, by address
        self._end: asyncio.TimerHandle | None = None  # of the window

    def warn(self, peer: str, message: str) -> None:
        """Log `message` about the peer `host:port`; only count it if its lines are used up."""
        host = peer.rpartition(":")[0]
        if host not in self._counts and len(self._counts) >= MOST_ADDRESSES:
            host = _OTHERS
        count = self._counts[host] = self._counts.get(host, 0) + 1
        if self._end is None:
            self._end = asyncio.get_running_loop().call_later(WINDOW, self.flush)
        if count <= PER_WINDOW:
            logger.warning("connection from %s closed: %s", printable(peer), printable(message))

    def flush(self) -> None:
        """End the window: log how many warnings were left out."""
        if self._end is not None:
            self._end.cancel()
            self._end = None
        counts, self._counts = self._counts, {}
        for host, count in counts.items():
            if count > PER_WINDOW:
                logger.warning(
                    "closed %d more connections from %s after errors within %.0f s (not logged individually)",
                    count - PER_WINDOW,
                    printable(host),
                    WINDOW,
                )


class LastingErrors:
    """Logs errors of requests that may last: on change, and every 30 seconds."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, float]] = {}  # text and time of the last line, by subject

    def log(self, logger: logging.Logger, subject: str, error: Exception) -> None:
        """Log an ERROR about `subject`, such as a group or a partition, unless it only repeats."""
        now = asyncio.get_running_loop().time()
        text, logged_at = self._last.get(subject, ("", 0.0))
        if text == str(error) and now - logged_at < REPEAT_AFTER:
            return
        if len(self._last) >= MOST_SUBJECTS:
            self._last.clear()
        self._last[subject] = (str(error), now)
        logger.error("%s: %s", subject, error)


class ConnectionLimits:
    """The numbers of connections of a node: in total and by address (Java: `ConnectionQuotas`)."""

    def __init__(self, configs: BrokerConfigs) -> None:
        self._configs = configs
        self._counts: dict[str, int] = {}  # by host
        self._total = 0

    def refusal(self, host: str) -> str | None:
        """Return the reason why another connection from this address must be rejected, if any."""
        most = self._configs.integer("max.connections")
        if self._total >= most:
            return f"max.connections ({most}) is reached"
        most = self._most_of(host)
        if self._counts.get(host, 0) >= most:
            return f"max.connections.per.ip ({most}) is reached"
        return None

    def _most_of(self, host: str) -> int:
        for override in (self._configs.text("max.connections.per.ip.overrides") or "").split(","):
            name, _, count = override.strip().rpartition(":")
            if name == host and count.isdecimal():
                return int(count)
        return self._configs.integer("max.connections.per.ip")

    def add(self, host: str) -> None:
        """Count a new connection."""
        self._counts[host] = self._counts.get(host, 0) + 1
        self._total += 1

    def remove(self, host: str) -> None:
        """Count a connection no longer."""
        self._total -= 1
        left = self._counts[host] - 1
        if left:
            self._counts[host] = left
        else:
            del self._counts[host]


class LargeRequest(Protocol):
    """A connection that reads a request which does not fit into its buffer."""

    def proceed(self) -> None:
        """Read the request: there is memory for it now."""
        ...


class RequestMemory:
    """The memory of large requests that are being read or handled: `queued.max.request.bytes`.

    A request is read if any memory is left, as in Kafka: so that each one that began can end.
    """

    def __init__(self, limit: int) -> None:
        """`limit` in bytes; 0 or less: none."""
        self._limit = limit
        self.size: int = 0  # bytes
        self._waiting: dict[LargeRequest, int] = {}  # bytes of each request, the first one first

    @property
    def waiting(self) -> int:
        """The number of connections that wait for memory."""
        return len(self._waiting)

    def take(self, reader: LargeRequest, size: int) -> bool:
        """Take memory for a request; False: the connection waits until `proceed`."""
        if self._limit > 0 and (self.size >= self._limit or self._waiting):
            self._waiting[reader] = size
            return False
        self.size += size
        return True

    def give_back(self, size: int) -> None:
        """Return the memory of handled requests to those that wait."""
        self.size -= size
        while self._waiting and self.size < self._limit:
            reader = next(iter(self._waiting))
            self.size += self._waiting.pop(reader)
            reader.proceed()

    def discard(self, reader: LargeRequest) -> None:
        """Remove a connection that waits, because it is closed."""
        self._waiting.pop(reader, None)


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
