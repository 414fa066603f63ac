"""Streams of events: what a producer or a consumer reports to those who listen, in order and bounded. No I/O.

An event is made only while there is a listener: callers ask `Events.wanted` first.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections import deque
from typing import Final, Generic, Self, TypeVar

import anyio

E = TypeVar("E")

# What a stream keeps for a listener that does not come.
LIMIT: Final = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Throttled:
    """A broker demands silence (KIP-219): nothing is fetched from it, or produced to it, for that long."""

    node_id: int
    seconds: float


class EventStream(Generic[E]):
    """What has happened since it was made, in order. Ends when its client is closed, once all was handed over.

    Keeps a limited number of events for a listener that is busy: of more, the oldest are dropped, and counted in
    `dropped`.
    """

    def __init__(self, *, limit: int, without: tuple[type, ...] = ()) -> None:
        """`without`: the kinds of events that it leaves out."""
        self.dropped = 0
        self._without = without
        self._kept: deque[E] = deque(maxlen=limit)
        self._arrived = anyio.Event()
        self._closed = False

    def put(self, event: E) -> None:
        """For the client: this happened."""
        if self._closed or isinstance(event, self._without):
            return
        if len(self._kept) == self._kept.maxlen:
            self.dropped += 1
        self._kept.append(event)
        self._wake()

    def close(self) -> None:
        """Listen no more; what was kept can still be taken."""
        self._closed = True
        self._wake()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> E:
        while not self._kept:
            if self._closed:
                raise StopAsyncIteration
            await self._arrived.wait()
        return self._kept.popleft()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = anyio.Event()


class Events(Generic[E]):
    """The listeners of one client."""

    def __init__(self) -> None:
        self._streams: weakref.WeakSet[EventStream[E]] = weakref.WeakSet()
        self._closed = False

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return bool(self._streams)

    def listen(self, *, limit: int = LIMIT, without: tuple[type, ...] = ()) -> EventStream[E]:
        """A new listener; it is forgotten when it is dropped."""
        stream = EventStream[E](limit=limit, without=without)
        if self._closed:
            stream.close()
        else:
            self._streams.add(stream)
        return stream

    def publish(self, event: E) -> None:
        """Hand an event to every listener."""
        for stream in list(self._streams):
            stream.put(event)

    def close(self) -> None:
        """Nothing more happens."""
        self._closed = True
        for stream in list(self._streams):
            stream.close()
        self._streams.clear()
