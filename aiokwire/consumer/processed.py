"""Tracks which delivered records the application processes; all earlier ones are finished. No I/O.

The reader reports requests for records, and what it takes; fast-path records are detected by their
chunk's position. For the automatic commit and the check of `max_poll_interval_ms`.
"""

from __future__ import annotations

from typing import NamedTuple

from aiokwire.consumer._iterate import Chunk, Feed
from aiokwire.consumer.positions import PartitionState
from aiokwire.group import CurrentMembership
from aiokwire.types import OffsetAndMetadata


class Held(NamedTuple):
    """The record that a stream is processing."""

    state: PartitionState
    position: OffsetAndMetadata  # before the record


class ProcessedTracker:
    """The record, list or batch that the application processes."""

    def __init__(self, feed: Feed, membership: CurrentMembership) -> None:
        self._feed = feed
        self._membership = membership
        self._calls = 0
        self._chunk: Chunk | None = None  # of the last single record
        self._lists: dict[PartitionState, OffsetAndMetadata | None] = {}  # positions before the last list
        self._seen: tuple[Chunk, int] | None = None  # the fast path's chunk and position at the last request
        self._streams: dict[PartitionState, OffsetAndMetadata] = {}  # positions before each stream's record
        self._progress: object = None
        self._progressed_at = 0.0

    # --- called by the reader -----------------------------------------------------------------------------------------

    def on_read(self) -> None:
        """The application asks for records: it has finished the previous ones."""
        self._calls += 1
        self._chunk = None
        if self._lists:
            self._lists.clear()
        chunk = self._feed.current
        self._seen = None if chunk is None else (chunk, chunk.position)
        if (member := self._membership.member) is not None:
            member.record_poll()

    def took_one(self, chunk: Chunk) -> None:
        """A record is about to be taken from `chunk`; later ones may be by the fast path."""
        self._chunk = chunk

    def took_list(self, state: PartitionState) -> None:
        """Records of a partition are about to be taken."""
        if state not in self._lists:
            self._lists[state] = state.committable

    def on_stream_read(self, held: Held | None) -> None:
        """A stream asks for a record: it finished `held`; no other reader finished anything."""
        self._calls += 1
        if held is not None:
            self.put_back(held)
        if (member := self._membership.member) is not None:
            member.record_poll()

    def took_for_stream(self, held: Held) -> None:
        """A record is about to be taken for a stream."""
        self._streams[held.state] = held.position

    def put_back(self, held: Held) -> bool:
        """Stop tracking a stream's record; False if it was not: the position was moved."""
        return self._streams.pop(held.state, None) is not None

    def forget(self, state: PartitionState) -> None:
        """Stop tracking a partition whose position is moved on purpose."""
        self._lists.pop(state, None)
        self._streams.pop(state, None)

    @property
    def calls(self) -> int:
        """The number of requests of the application for records."""
        return self._calls

    @property
    def last_progress(self) -> float | None:
        """What `progressed_at` returned last; None before the first call."""
        return None if self._progress is None else self._progressed_at

    # --- for commits and membership -----------------------------------------------------------------------------------

    def finished(self, state: PartitionState) -> OffsetAndMetadata | None:
        """Return the position up to which a partition is finished; None while it has none."""
        if state in self._streams:
            return self._streams[state]
        if state in self._lists:
            return self._lists[state]
        position = state.committable
        for chunk in (self._chunk, self._feed.current):
            if chunk is None or chunk.partition is not state or chunk.last_taken < 0 or position is None:
                continue
            if chunk is self._chunk or self._seen != (chunk, chunk.position):
                return position._replace(offset=chunk.last_taken)
        return position

    def progressed_at(self, now: float, *, waiting: bool) -> float:
        """Return when the application was last seen to ask for records; `waiting`: it waits now."""
        chunk = self._feed.current
        progress = (self._calls, chunk, None if chunk is None else chunk.position)
        if waiting or progress != self._progress:
            self._progress = progress
            self._progressed_at = now
        return self._progressed_at
