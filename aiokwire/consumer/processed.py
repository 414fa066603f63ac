"""What the application has in hand, and what it has finished: all that it was handed before. No I/O.

The reader tells when the application comes for more, and what it takes; records that the fast path hands over are seen
by looking at the chunk that they come from. Used by the automatic commit, and to tell whether the application goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aiokwire.consumer._iterate import Chunk, Feed
from aiokwire.consumer.positions import PartitionState
from aiokwire.types import OffsetAndMetadata


class Held(NamedTuple):
    """The record that a stream is processing."""

    state: PartitionState
    position: OffsetAndMetadata  # before the record


class ProcessedTracker:
    """The record, list or batch that the application works on."""

    def __init__(self, feed: Feed) -> None:
        self._on_read: Callable[[], None] | None = None  # of the present membership
        self._feed = feed
        self._calls = 0
        self._chunk: Chunk | None = None  # where the last single record came from
        self._lists: dict[PartitionState, OffsetAndMetadata | None] = {}  # where partitions stood before a list
        self._seen: tuple[Chunk, int] | None = None  # the fast path's chunk when the application came back last
        self._streams: dict[PartitionState, OffsetAndMetadata] = {}  # where partitions stood before a stream's record
        self._progress: object = None
        self._progressed_at = 0.0

    def report_reads(self, on_read: Callable[[], None] | None) -> None:
        """Call `on_read` whenever the application asks for records, until the membership that wants it has ended."""
        self._on_read = on_read

    # --- called by the reader -----------------------------------------------------------------------------------------

    def came_back(self) -> None:
        """The application wants more: it has finished what it had."""
        self._calls += 1
        self._chunk = None
        if self._lists:
            self._lists.clear()
        chunk = self._feed.current
        self._seen = None if chunk is None else (chunk, chunk.position)
        if self._on_read is not None:
            self._on_read()

    def took_one(self, chunk: Chunk) -> None:
        """A record is about to be taken from `chunk`, and those after it may be by the fast path."""
        self._chunk = chunk

    def took_list(self, state: PartitionState) -> None:
        """Records of a partition are about to be taken."""
        if state not in self._lists:
            self._lists[state] = state.committable

    def stream_came_back(self, held: Held | None) -> None:
        """A stream wants more: it has finished what it had, and nobody else has finished anything."""
        self._calls += 1
        if held is not None:
            self.put_back(held)
        if self._on_read is not None:
            self._on_read()

    def took_for_stream(self, held: Held) -> None:
        """A record is about to be taken for a stream."""
        self._streams[held.state] = held.position

    def put_back(self, held: Held) -> bool:
        """A stream does not have a record any more; False when it does not matter whether it is finished, since the
        position was moved."""
        return self._streams.pop(held.state, None) is not None

    def forget(self, state: PartitionState) -> None:
        """The position was moved on purpose: what is in hand of it does not matter."""
        self._lists.pop(state, None)
        self._streams.pop(state, None)

    # --- asked by others ----------------------------------------------------------------------------------------------

    def finished(self, state: PartitionState) -> OffsetAndMetadata | None:
        """The position up to which a partition is finished; None while it has no position."""
        if state in self._streams:
            return self._streams[state]
        if state in self._lists:
            return self._lists[state]
        position = state.committable
        for chunk in (self._chunk, self._feed.current):
            if chunk is None or chunk.partition is not state or chunk.in_hand < 0 or position is None:
                continue
            if chunk is self._chunk or self._seen != (chunk, chunk.position):
                return position._replace(offset=chunk.in_hand)
        return position

    def progressed_at(self, now: float, *, waiting: bool) -> float:
        """When the application last came for more, as far as was noticed; `waiting`: it waits for records now."""
        chunk = self._feed.current
        progress = (self._calls, chunk, None if chunk is None else chunk.position)
        if waiting or progress != self._progress:
            self._progress = progress
            self._progressed_at = now
        return self._progressed_at
