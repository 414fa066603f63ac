"""Streams of a producer's or a consumer's events, in order and bounded. No I/O.

Events are created only while there is a stream: callers check `Events.wanted` first.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections import deque
from typing import Final, Generic, Self, TypeVar

import anyio

E = TypeVar("E")

# The default number of events that a stream keeps.
LIMIT: Final = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Throttled:
    """A broker throttles the client (KIP-219), which sends it no fetch or produce for this time."""

    node_id: int
    seconds: float


class EventStream(Generic[E]):
    """The events since its creation, in order. Ends after the last event once its client is closed.

    Keeps a limited number of events for a busy reader: drops the oldest, counted in `dropped`.
    """

    def __init__(self, *, limit: int, without: tuple[type, ...] = ()) -> None:
        """`without`: the types of events to leave out."""
        self.dropped: int = 0
        self._without = without
        self._kept: deque[E] = deque(maxlen=limit)
        self._arrived = anyio.Event()
        self._closed = False

    def put(self, event: E) -> None:
        """Add an event; called by the client."""
        if self._closed or isinstance(event, self._without):
            return
        if len(self._kept) == self._kept.maxlen:
            self.dropped += 1
        self._kept.append(event)
        self._wake()

    def close(self) -> None:
        """Accept no more events; kept ones can still be read."""
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
    """The event streams of one client."""

    def __init__(self) -> None:
        self.wanted: bool = False  # whether there is a stream: read for every request
        self._streams: list[weakref.ref[EventStream[E]]] = []
        self._closed = False

    def listen(self, *, limit: int = LIMIT, without: tuple[type, ...] = ()) -> EventStream[E]:
        """Create a stream; it ends with its last reference."""
        stream = EventStream[E](limit=limit, without=without)
        if self._closed:
            stream.close()
        else:
            self._streams.append(weakref.ref(stream, self._forget))
            self.wanted = True
        return stream

    def publish(self, event: E) -> None:
        """Add an event to every stream."""
        for stream in self._alive():
            stream.put(event)

    def close(self) -> None:
        """Close every stream."""
        self._closed = True
        for stream in self._alive():
            stream.close()
        self._streams.clear()
        self.wanted = False

    def _alive(self) -> list[EventStream[E]]:
        return [stream for reference in self._streams if (stream := reference()) is not None]

    def _forget(self, reference: weakref.ref[EventStream[E]]) -> None:
        if reference in self._streams:
            self._streams.remove(reference)
            self.wanted = bool(self._streams)
