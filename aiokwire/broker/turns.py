"""Fair turns of connections: clients that pipeline thousands of requests do not delay the others.

All connections share one part of each turn of the event loop; within it each handles requests as it
reads them. Further ones wait in one line for all, which handles one request per connection at a
time; a connection in it does not read until its queue is empty. The line has its own share. While
it is not empty, connections outside it handle one request per turn: most send no more.

Shares are counted, not measured: a simulated loop must always split work alike. Nor does the clock
show where a turn ends: asyncio's advances in it, uvloop reads a socket up to 32 times in one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

import anyio

# The share of the line in one turn of the loop, and that of the connections outside it. A request costs the encoded
# bytes of its response, an eighth of its own bytes (most are records, which are not decoded), and a constant. A share
# takes about 2 ms, 6 ms for the smallest Produce requests.
SHARE = 128 << 10
REQUEST_COST = 2 << 10


class Slices:
    """The slices of large requests: one in each turn of the loop, over all connections."""

    def __init__(self) -> None:
        self._lock: anyio.Lock | None = None  # created at first use: it belongs to a running loop

    async def __aenter__(self) -> None:
        """Wait for the next turn of the loop in which no other large request has a slice."""
        if self._lock is None:
            self._lock = anyio.Lock()
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.release()


class Member(Protocol):
    """A connection with requests in its queue."""

    def take_turn(self, share: int) -> tuple[int, bool]:
        """Handle requests until they cost `share`; return the cost, and whether more can follow."""
        ...


class Turns:
    """The shares of one turn of the loop, and the line of waiting connections."""

    def __init__(self) -> None:
        self.line: deque[Member] = deque()  # the connections that wait
        self.number: int = 0  # counts the turns of the loop in which the line is not empty
        self._left = SHARE  # for connections outside the line, in this turn
        self._filling = False  # a refill is scheduled

    def share_of(self, last: int) -> int:
        """Return what a connection outside the line may spend; `last`: `number` when last asked."""
        if not self.line:
            return self._left
        return min(self._left, 1) if last != self.number else 0

    def spend(self, cost: int) -> None:
        """Subtract the cost of requests from this turn's share of connections outside the line."""
        self._left -= cost
        # Only once half is spent: otherwise a client that waits for each response would pay for a turn each time.
        if not self._filling and self._left < SHARE // 2:
            self._filling = True
            asyncio.get_running_loop().call_soon(self._fill)

    def _fill(self) -> None:
        self._filling = False
        self._left = SHARE

    def join(self, member: Member) -> None:
        """Put a connection that is not in the line at its end."""
        if not self.line:
            asyncio.get_running_loop().call_soon(self._run)
        self.line.append(member)

    def _run(self) -> None:
        self.number += 1
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
