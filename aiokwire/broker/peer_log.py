"""Warnings about misbehaving peers, a few per address and minute: a hostile client must not fill the disk."""

from __future__ import annotations

import asyncio
import logging

from aiokwire._text import printable

logger = logging.getLogger(__name__)

PER_WINDOW = 5  # lines for one address
WINDOW = 60.0  # seconds
MOST_ADDRESSES = 1000  # that have their own count; the others share one
_OTHERS = "other addresses"


class PeerLog:
    """Logs errors of peers, with everything that they sent escaped."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # warnings of the current window, by address
        self._end: asyncio.TimerHandle | None = None  # of the window

    def warn(self, peer: str, message: str) -> None:
        """Log `message` about the peer `host:port`, or only count it if the address has used up its lines."""
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
                    "connections from %s: %d more were closed for bad requests within %.0f s, not logged one by one",
                    printable(host),
                    count - PER_WINDOW,
                    WINDOW,
                )
