"""Fair turns between connections: a client that pipelines thousands of requests delays nobody else's by more than one.

A connection handles what it reads at once, up to its share of one turn of the event loop. What it has beyond that
waits in one line for all connections, one request each, and the connection reads nothing more until its line is empty.
The line gets one share of each turn, so connections that ask for little are answered in between.

Shares are counted, not measured: a simulated loop must split the same work at the same place every time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

SHARE = 64 << 10  # cost that one turn of the loop takes of the line, or of a connection that is not in it: about 1 ms
_REQUEST = 2 << 10  # the least that a request costs, in bytes of an answer that is encoded meanwhile


def cost_of(request_size: int, answer_size: int) -> int:
    """Estimate what a request took: its bytes are mostly records, which pass by; an answer's fields are encoded."""
    return _REQUEST + (request_size >> 3) + answer_size


class Member(Protocol):
    """A connection with requests in its queue."""

    def take_turn(self) -> tuple[int, bool]:
        """Handle one request; return its cost, and whether there are more that may be handled now."""
        ...


class Turns:
    """The line of the connections that have had their share."""

    def __init__(self) -> None:
        self._line: deque[Member] = deque()

    @property
    def is_contended(self) -> bool:
        """Whether anybody waits in the line."""
        return bool(self._line)

    def join(self, member: Member) -> None:
        """Put a connection at the end of the line; it must not be in it."""
        if not self._line:
            asyncio.get_running_loop().call_soon(self._run)
        self._line.append(member)

    def _run(self) -> None:
        left = SHARE
        while self._line and left > 0:
            member = self._line[0]
            cost, has_more = member.take_turn()
            self._line.popleft()
            if has_more:
                self._line.append(member)
            left -= cost
        if self._line:
            asyncio.get_running_loop().call_soon(self._run)
