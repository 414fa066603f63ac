"""Fetched batches that were not delivered yet, by partition, with one count of their bytes.

Filled by the fetcher, drained by the reader. All batches of a response refer to its memory, so it
counts as held until the last is released. Decompressed bytes and decoded records count, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Sequence
from itertools import islice
from typing import Final

import anyio

from aiokwire.consumer._iterate import Chunk, Feed
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.positions import NEVER, PartitionState
from aiokwire.errors import KafkaError
from aiokwire.records import RecordBatch, Visible
from aiokwire.types import TopicPartition

Only = Container[TopicPartition] | None

# The approximate size of a record object without its key and value; counted for COUNTED_FROM records or more.
RECORD_BYTES: Final = 96
COUNTED_FROM: Final = 1024


class Lease:
    """The memory of one response, or of a decompressed or decoded batch, shared by chunks."""

    __slots__ = ("_buffer", "_holders", "_inner", "size")

    def __init__(self, buffer: FetchBuffer, size: int, inner: Lease | None = None) -> None:
        """Its creator holds it; `inner` is released together with it."""
        self._buffer = buffer
        self._holders = 1
        self._inner = inner
        self.size: int = size
        buffer.held += size

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            self._buffer.held -= self.size
            if self._inner is not None:
                self._inner.release()


class FetchBuffer:
    """The chunks of all partitions, which take turns."""

    def __init__(
        self,
        feed: Feed,
        hooks: ConsumerHooks,
        on_room: Callable[[PartitionState], None],
        on_add: Callable[[Chunk], None],
    ) -> None:
        """`on_room` is called when a partition has fewer bytes than before and may be fetched
        again, `on_add` with the first chunk of each fetch."""
        self.held = 0  # bytes that chunks refer to; written by Lease
        self.feed = feed
        self._hooks = hooks
        self._on_room = on_room
        self._on_add = on_add
        self._turns: deque[PartitionState] = deque()  # partitions with chunks, each once; the first has its turn
        self._failed: list[PartitionState] = []  # partitions with an error that no reader has received
        self._changed = anyio.Event()
        self._waiting = 0

    # --- filling: the fetcher -----------------------------------------------------------------------------------------

    def add(self, state: PartitionState, visible: Visible, lease: Lease) -> None:
        """Add the batches that a fetch returned for a partition."""
        if visible.begin > state.cursor.fetch_offset:
            if state.chunks:
                state.chunks[-1].extend(visible.begin)
            else:
                state.cursor.advance(visible.begin)
        if visible.batches and not state.chunks:
            self._turns.append(state)
        start = visible.begin
        for batch, end in visible.batches:
            lease.hold()
            state.chunks.append(Chunk(state, batch, start, end, batch.size, lease))
            state.buffered += batch.size
            start = end
        state.cursor.fetched(visible.end, visible.epoch)
        if visible.batches:
            if state.sample_at == NEVER:
                state.sample_at = start
            self._on_add(state.chunks[-len(visible.batches)])
            self.notify()

    def fail(self, state: PartitionState, error: KafkaError) -> None:
        """Stop a partition; a reader raises `error` once the records before it are delivered."""
        state.fail(error)
        if state not in self._failed:
            self._failed.append(state)
        self.notify()

    def notify(self) -> None:
        """Wake every waiting reader."""
        if self._waiting:
            self._changed.set()
            self._changed = anyio.Event()

    # --- decoding -----------------------------------------------------------------------------------------------------

    def upcoming(self, limit: int) -> list[Chunk]:
        """Return the chunks that are delivered next, approximately in that order."""
        states = [state for state in islice(self._turns, limit) if state.chunks and not state.paused]
        rounds = zip(*(_first(state.chunks, limit) for state in states), strict=True)
        return list(islice((chunk for turn in rounds for chunk in turn if chunk is not None), limit))

    def unpacked(self, chunk: Chunk, parts: Sequence[RecordBatch]) -> None:
        """Account for a decompressed chunk, and replace it by its `parts`, if there are any."""
        size = chunk.batch.decompressed_size
        if parts:
            self._split(chunk, parts, Lease(self, size) if size else None)
        elif size:
            chunk.lease = Lease(self, size, chunk.lease)

    def _split(self, chunk: Chunk, parts: Sequence[RecordBatch], lease: Lease | None) -> None:
        """Replace a chunk by its parts; without their own `lease` they refer to the response."""
        state: PartitionState = chunk.partition
        ends = [part.base_offset for part in parts[1:]]
        kept = [(part, end) for part, end in zip(parts, [*ends, chunk.end], strict=True) if end >= chunk.start]
        size, rest = divmod(chunk.size, len(kept))
        shared = chunk.lease if lease is None else lease
        start = chunk.start
        pieces: list[Chunk] = []
        for part, next_base in kept:
            end = chunk.end if part is kept[-1][0] else min(max(start, next_base), chunk.end)
            pieces.append(Chunk(state, part, start, end, size if pieces else size + rest, shared))
            shared.hold()
            start = end
        index = state.chunks.index(chunk)
        state.chunks.rotate(-index)
        state.chunks.popleft()
        state.chunks.extendleft(reversed(pieces))
        state.chunks.rotate(index)
        chunk.lease.release()
        if lease is not None:
            lease.release()  # its creator's hold
        chunk.drop()

    def loaded(self, chunk: Chunk) -> None:
        """Account for a chunk whose records were decoded."""
        if chunk.count >= COUNTED_FROM:
            chunk.lease = Lease(self, chunk.count * RECORD_BYTES, chunk.lease)

    # --- draining: the reader -----------------------------------------------------------------------------------------

    def current(self, only: Only = None) -> Chunk | None:
        """Return the next chunk of the partitions in `only`, or None."""
        for _ in range(len(self._turns)):
            state = self._turns[0]
            if not state.chunks:
                self._turns.popleft()
            elif state.paused or (only is not None and state.tp not in only):
                self._turns.rotate(-1)
            else:
                return state.chunks[0]
        return None

    def finish(self, chunk: Chunk, records: int | None = None) -> None:
        """Remove a chunk that was delivered; the next partition gets its turn. `records`: how many,
        of a chunk that was not decoded."""
        if chunk.dropped:
            return
        state: PartitionState = chunk.partition
        state.chunks.popleft()
        state.cursor.advance(chunk.end, chunk.batch.leader_epoch)
        state.counts.delivered(chunk.count if records is None else records, chunk.size)
        if chunk.end >= state.sample_at:
            state.sample_at = NEVER
            state.counts.observe_age(chunk.batch.max_timestamp)
        if self._hooks.wants_batches:
            self._hooks.batch_read(chunk)
        if self._turns and self._turns[0] is state:
            self._turns.rotate(-1) if state.chunks else self._turns.popleft()
        self._release(state, chunk)
        self._on_room(state)
        if self._hooks.reports_ends:
            self._hooks.progress(state)

    def drop(self, state: PartitionState) -> None:
        """Drop a partition's chunks; its position stays at the first undelivered record."""
        if not state.chunks:
            return
        position = state.committable
        assert position is not None  # a partition with chunks has a position
        state.cursor.advance(position.offset, position.leader_epoch)
        state.cursor.fetch_again_from(position.offset)
        chunks = list(state.chunks)
        state.chunks.clear()
        if chunks[0].loaded:
            state.counts.delivered(chunks[0].count - chunks[0].remaining, 0)
        for chunk in chunks:
            self._release(state, chunk)
            chunk.drop()
        self._turns.remove(state)
        self._on_room(state)

    def cut(self, chunk: Chunk, offset: int) -> None:
        """End a partition's chunks with this one, at `offset`, and drop those after it."""
        state: PartitionState = chunk.partition
        while state.chunks[-1] is not chunk:
            behind = state.chunks.pop()
            self._release(state, behind)
            behind.drop()
        chunk.extend(offset)
        state.cursor.fetch_again_from(offset)

    def feed_from(self, chunk: Chunk | None) -> None:
        """Deliver records from this decoded chunk; None: from none until the reader finds one."""
        self.feed.current = chunk

    def set_aside(self, state: PartitionState) -> None:
        """Deliver nothing more of a partition that was paused."""
        current = self.feed.current
        if current is not None and current.partition is state:
            self.feed.current = None

    def failed(self, only: Only = None) -> PartitionState | None:
        """Return a partition whose error is due: all records before it were delivered; or None."""
        for state in list(self._failed):
            if state.error is None:
                self._failed.remove(state)  # a seek has cleared it
            elif not state.chunks and (only is None or state.tp in only):
                self._failed.remove(state)
                return state
        return None

    async def changed(self) -> None:
        """Wait until something was added or reported."""
        self._waiting += 1
        try:
            await self._changed.wait()
        finally:
            self._waiting -= 1

    @property
    def is_awaited(self) -> bool:
        """Whether a reader waits for records."""
        return self._waiting > 0

    def shed(self, states: Sequence[PartitionState], only: Only) -> bool:
        """Drop the chunks of partitions paused or not in `only`; return whether there were any."""
        unwanted = [s for s in states if s.chunks and (s.paused or (only is not None and s.tp not in only))]
        for state in unwanted:
            state.attempt.interrupt()
            self.drop(state)
        return bool(unwanted)

    def _release(self, state: PartitionState, chunk: Chunk) -> None:
        state.buffered -= chunk.size
        chunk.lease.release()
        if self.feed.current is chunk:
            self.feed.current = None


def _first(chunks: deque[Chunk], limit: int) -> list[Chunk | None]:
    found: list[Chunk | None] = list(islice(chunks, limit))
    return found + [None] * (limit - len(found))
