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

# What one turn of the loop gives to the line, or to a connection that is not in it. A request costs the bytes of its
# answer that are encoded, an eighth of its own (most are records, which pass by), and this much beside: 2 ms in all.
SHARE = 128 << 10
REQUEST_COST = 2 << 10


class Member(Protocol):
    """A connection with requests in its queue."""

    def take_turn(self, share: int) -> tuple[int, bool]:
        """Handle requests until they cost `share`; return their cost, and whether more may be handled now."""
        ...


class Turns:
    """The line of the connections that have had their share."""

    def __init__(self) -> None:
        self.line: deque[Member] = deque()  # who waits

    def join(self, member: Member) -> None:
        """Put a connection at the end of the line; it must not be in it."""
        if not self.line:
            asyncio.get_running_loop().call_soon(self._run)
        self.line.append(member)

    def _run(self) -> None:
        left = SHARE
        while self.line and left > 0:
            member = self.line[0]
            cost, has_more = member.take_turn(left if len(self.line) == 1 else 1)
            self.line.popleft()
            if has_more:
                self.line.append(member)
            left -= cost
        if self.line:
            asyncio.get_running_loop().call_soon(self._run)
