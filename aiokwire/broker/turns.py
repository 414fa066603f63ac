"""Fair turns between connections: clients that pipeline thousands of requests do not keep the others waiting.

All connections together have one share of each turn of the event loop. Within it a connection handles at once what it
reads. What is beyond it waits in one line for all connections, one request each, and a connection in the line reads
nothing more until its queue is empty. The line has a share of each turn of its own. While it is not empty, a connection
outside it handles one request per turn at once: most clients have no more.

Shares are counted, not measured: a simulated loop must split the same work at the same place every time. Nor does the
clock show where a turn ends: asyncio's moves within a turn, and uvloop reads a socket up to 32 times in one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

import anyio

# What one turn of the loop gives to the line, and to the connections outside it. A request costs the bytes of its
# answer that are encoded, an eighth of its own (most are records, which pass by), and this much beside: 2 ms in all,
# 6 ms for the smallest Produce requests.
SHARE = 128 << 10
REQUEST_COST = 2 << 10


class Slices:
    """The slices of large requests: one in each turn of the loop, whatever connections they come from."""

    def __init__(self) -> None:
        self._lock: anyio.Lock | None = None  # made when first used: it belongs to a running loop

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
        """Handle requests until they cost `share`; return their cost, and whether more may be handled now."""
        ...


class Turns:
    """The shares of one turn of the loop, and the line of the connections that wait for theirs."""

    def __init__(self) -> None:
        self.line: deque[Member] = deque()  # the connections that wait
        self.number = 0  # counts the turns of the loop in which the line is not empty
        self._left = SHARE  # for connections outside the line, in this turn
        self._filling = False  # a refill is scheduled

    def share_of(self, last: int) -> int:
        """Return what a connection outside the line may spend now; `last` is the `number` when it last asked."""
        if not self.line:
            return self._left
        return min(self._left, 1) if last != self.number else 0

    def spend(self, cost: int) -> None:
        """Take the cost of requests from what this turn has for connections outside the line."""
        self._left -= cost
        # Only once half is spent: a lone client that waits for each answer would pay for a turn of the loop each time.
        if not self._filling and self._left < SHARE // 2:
            self._filling = True
            asyncio.get_running_loop().call_soon(self._fill)

    def _fill(self) -> None:
        self._filling = False
        self._left = SHARE

    def join(self, member: Member) -> None:
        """Put a connection at the end of the line; it must not be in it."""
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
