"""Delivers buffered batches to the application: waiting, decoding, taking.

Records are taken only in the turn of the event loop that returns them, so a cancelled call loses
none. The position of a partition moves when its records are taken. A timeout bounds only the wait
for records: those that are ready in the buffer are returned whatever the timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final, Generic, Self

import anyio

from aiokwire.config import checked_timeout
from aiokwire.consumer._iterate import Chunk, Feed
from aiokwire.consumer.batches import Batch
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.corruption import corrupt_record
from aiokwire.consumer.decoder import Decoder, Spawn
from aiokwire.consumer.deserialization import CoroutineReturned, Deserialized
from aiokwire.consumer.fetch_buffer import COUNTED_FROM, FetchBuffer, Only
from aiokwire.consumer.hooks_adapter import ConsumerHooks
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.processed import Held, ProcessedTracker
from aiokwire.errors import ClosedError, CorruptRecord, KafkaError, RequestTimedOut
from aiokwire.group import CurrentMembership
from aiokwire.records import Columns
from aiokwire.types import K, TopicPartition, V

# A list or columns with at least a part's records take no further batch after this time (seconds).
TURN: Final = 0.005
# Columns take no further batch from this size on: filling them blocks the loop for some milliseconds.
ARROW_BYTES: Final = 8 * 1024 * 1024

# Records by partition, in the order in which the partitions had their turns.
Groups = dict[TopicPartition, list[Any]]


class AnyOf:
    """The union of several containers."""

    def __init__(self, choices: list[Only]) -> None:
        self._choices = choices

    def __contains__(self, tp: object) -> bool:
        return any(choice is None or tp in choice for choice in self._choices)


class Share:
    """The partitions of one stream, as a container that restricts the reader to them.

    A partition is locked while a stream processes its record, even if another stream owns it now.
    """

    def __init__(self, locks: dict[TopicPartition, Share]) -> None:
        """Create a share without partitions. All shares of a consumer have the same `locks`."""
        self.partitions: frozenset[TopicPartition] = frozenset()
        self.closed = False
        self._held: Held | None = None
        self._locks = locks

    def __contains__(self, tp: object) -> bool:
        return tp in self.partitions and self._locks.get(tp, self) is self

    def take(self, held: Held) -> None:
        """Lock the partition of the record that is delivered."""
        self._held = held
        self._locks[held.state.tp] = self

    def put_back(self) -> Held | None:
        """Unlock the partition; return the record that the stream was processing, or None."""
        held, self._held = self._held, None
        if held is not None:
            del self._locks[held.state.tp]
        return held


class Reader:
    """The waiting side of a `FetchBuffer`."""

    def __init__(
        self,
        config: ConsumerConfig,
        hooks: ConsumerHooks,
        membership: CurrentMembership,
        on_room: Callable[[PartitionState], None],
        on_wait: Callable[[], None],
    ) -> None:
        """`on_room` is called when a partition may be fetched again, because it was drained or its
        error was raised; `on_wait` when a reader finds no record and starts to wait."""
        self.feed: Feed = Feed(self._advance)
        self.buffer: FetchBuffer = FetchBuffer(self.feed, hooks, on_room, self._on_add)
        self._on_room = on_room
        self._on_wait = on_wait
        self._config = config
        self._deserialization = config.new_deserialization()
        self._plain = not self._deserialization.is_needed
        self._decoder = Decoder(
            self.buffer, self._deserialization, config.fetch_memory, self._on_deserialized, self._on_unreadable
        )
        self._ended: KafkaError | None = None  # closed, or failed
        self._closed = False  # by the application
        self.processed: ProcessedTracker = ProcessedTracker(self.feed, membership)
        self._clock: Callable[[], float] = _not_started
        self._notice: KafkaError | None = None  # raised once, by the next read of any partition
        self._wants: list[Only] = []  # the partitions of each waiting reader
        self._convert_error: Callable[[KafkaError], BaseException] | None = None  # for `async for`

    def convert_errors(self, function: Callable[[KafkaError], BaseException]) -> None:
        """See `Consumer.convert_errors`."""
        self._convert_error = function

    def start(self, spawn: Spawn) -> None:
        """Bind to the running loop; `spawn` starts a background task of the client."""
        self._clock = asyncio.get_running_loop().time
        self.feed.bind(self._clock)
        self._decoder.start(spawn)

    def close(self) -> None:
        """End loops over the consumer, which the application has closed; other calls fail."""
        self._closed = True
        self.end(ClosedError("the consumer was closed"))

    def end(self, error: KafkaError) -> None:
        """Deliver no more records: waiting and later readers raise `error`."""
        if self._ended is None:
            self._ended = error
        self.buffer.feed_from(None)
        self.buffer.notify()
        self._decoder.release()

    def raise_once(self, error: KafkaError) -> None:
        """Have the next await of a reader raise `error`."""
        self._notice = error
        self.buffer.feed_from(None)
        self.buffer.notify()

    @property
    def wanted(self) -> Only:
        """The partitions that waiting readers want; memory is reserved for them when it is full."""
        if len(self._wants) == 1:
            return self._wants[0]
        return None if any(want is None for want in self._wants) else AnyOf(list(self._wants))

    @property
    def ended(self) -> KafkaError | None:
        """Why no more records are delivered."""
        return self._ended

    # --- the ways to read ---------------------------------------------------------------------------------------------

    async def one(self, timeout: float | None = None) -> Any:
        """Return the next record.

        Raises: RequestTimedOut: no record arrived within `timeout` seconds.
        """
        self.processed.on_read()
        if self.feed.due:
            await self._take_turn()
        chunk = self._find(None)
        if chunk is None:
            with anyio.move_on_after(checked_timeout(timeout)):
                chunk = await self._ready(None)
        if chunk is None:
            raise RequestTimedOut(f"no record arrived within {timeout} s")
        return self._take_one(chunk)

    async def many(self, limit: int, timeout: float | None, only: Only, groups: Groups | None = None) -> list[Any]:
        """Return up to `limit` records: those that are ready, else the first within `timeout`
        seconds. With `groups` they are added there, by partition, and the list is empty."""
        self.processed.on_read()
        if self.feed.due:
            await self._take_turn()
        self._raise_if_stopped(only)
        records = self._take_many(limit, only, groups)
        if records or groups:
            return records
        with anyio.move_on_after(checked_timeout(timeout)):
            await self._ready(only)
        return self._take_many(limit, only, groups)

    async def columns(self, limit: int, timeout: float | None, only: Only) -> Columns:
        """Return up to `limit` records as columns, undecoded; as `many`, but by whole batches."""
        self.processed.on_read()
        if self.feed.due:
            await self._take_turn()
        self._raise_if_stopped(only)
        columns = self._take_columns(limit, only)
        with anyio.move_on_after(checked_timeout(timeout)):
            while not len(columns):
                chunk = await self._pick(only)
                if not self._decoder.is_ready(chunk, records=False):
                    await self._make_ready(chunk, records=False)
                columns = self._take_columns(limit, only)
        return columns

    async def batch(self) -> Batch[Any, Any] | None:
        """Return the next batch, decompressed, without delivered records; None once closed."""
        self.processed.on_read()
        if self.feed.due:
            await self._take_turn()
        while True:
            try:
                chunk = await self._pick(None)
            except ClosedError:
                if self._closed:
                    return None
                raise
            if not self._decoder.is_ready(chunk):
                await self._make_ready(chunk)
                continue
            batch = self._take_batch(chunk)
            if batch.count:
                return batch

    async def next_of(self, share: Share) -> Any:
        """Return the next record of a stream."""
        held = share.put_back()
        self.processed.on_stream_read(held)
        if held is not None and held.state.tp not in share.partitions:
            self.buffer.notify()  # the stream that owns the partition now waits for it
        try:
            chunk = await self._ready(share)
        except ClosedError:
            if self._closed or share.closed:
                raise StopAsyncIteration from None
            raise
        state: PartitionState = chunk.partition
        position = state.committable
        assert position is not None  # a partition with chunks has a position
        if (other := share.put_back()) is not None:
            self.processed.put_back(other)  # two tasks use the stream: the other task's record is not tracked
        held = Held(state, position)
        share.take(held)
        self.processed.took_for_stream(held)
        self.feed.spend(1, 0)
        return chunk.take_one()

    async def position(self, state: PartitionState) -> int:
        """Return a partition's position, once it has one."""
        while True:
            position = state.position
            if self._ended is None or position is None:  # a rebalance listener may ask while the consumer closes
                self._raise_if_stopped((state.tp,))
            if position is not None:
                return position
            await self.buffer.changed()

    async def until_assigned(self, states: Collection[TopicPartition]) -> None:
        """Wait until a partition is assigned; `Subscription` notifies the buffer then.

        Raises: as a reader.
        """
        await self.until(lambda: bool(states))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds that changes when the buffer is notified.

        Raises: as a reader.
        """
        while not condition():
            self._raise_if_stopped(None)
            await self.buffer.changed()

    async def _advance(self) -> Any:
        """Return the next record of `async for` when the current chunk has none."""
        self.processed.on_read()
        try:
            chunk = await self._ready(None)
        except KafkaError as error:
            if self._closed and isinstance(error, ClosedError):
                raise StopAsyncIteration from None
            if self._convert_error is not None:
                raise self._convert_error(error) from error.__cause__
            raise
        self.buffer.feed_from(chunk)
        return self._take_one(chunk)

    # --- taking: no await in here -------------------------------------------------------------------------------------

    def _take_one(self, chunk: Chunk) -> Any:
        self.feed.spend(1, 0)
        self.processed.took_one(chunk)
        return chunk.take_one()

    def _take_batch(self, chunk: Chunk) -> Batch[Any, Any]:
        state: PartitionState = chunk.partition
        position = chunk.position
        done = Deserialized(chunk.take(chunk.remaining)) if self._deserialization.is_async else None
        batch: Batch[Any, Any] = Batch(chunk.batch, state.tp, position, chunk.end, self._deserialization, done)
        self.feed.spend(0, chunk.size)
        self.processed.took_list(state)
        self.buffer.finish(chunk, None if chunk.loaded else batch.count)
        return batch

    def _take_many(self, limit: int, only: Only, groups: Groups | None) -> list[Any]:
        taken: list[Any] = []
        room = limit
        timed = limit - self._decoder.part_records  # with this much room or less the time is limited
        size = 0
        until = self._clock() + TURN if timed > 0 else 0.0
        while room > 0 and self._ended is None:
            chunk = self.buffer.current(only)
            if chunk is None:
                break
            if not chunk.loaded:
                if not self._load(chunk):
                    break
                size += chunk.size
            state: PartitionState = chunk.partition
            self.processed.took_list(state)
            some = chunk.take(room)
            room -= len(some)
            if not chunk.remaining:
                self.buffer.finish(chunk)
            if groups is not None:
                _add_to(groups, state.tp, some)
            elif taken:
                taken += some
            else:
                taken = some
            if room <= timed and self._clock() >= until:
                break
        self.feed.spend(limit - room, size)
        return taken

    def _take_columns(self, limit: int, only: Only) -> Columns:
        columns = Columns()
        taken = spent = 0
        until = self._clock() + TURN
        while columns.size < ARROW_BYTES and self._ended is None:
            chunk = self.buffer.current(only)
            if chunk is None or not self._decoder.is_ready(chunk, records=False):
                break
            if taken >= self._decoder.part_records and self._clock() >= until:
                break
            if taken and taken + max(chunk.batch.count, 0) > limit:
                break
            try:
                chunk.add_to(columns)
            except CorruptRecord as error:
                self._on_unreadable(chunk, error)
                break
            before, taken = taken, len(columns)
            spent += chunk.size
            self.processed.took_list(chunk.partition)
            self.buffer.finish(chunk, None if chunk.loaded else taken - before)
        self.feed.spend(0, spent)
        return columns

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def _ready(self, only: Only) -> Chunk:
        """Return a decoded chunk with records left; waits for one."""
        if self.feed.due:
            await self._take_turn()
        while True:
            chunk = self._find(only)
            if chunk is not None:
                return chunk
            chunk = await self._pick(only)
            if not self._decoder.is_ready(chunk):
                await self._make_ready(chunk)

    def _find(self, only: Only) -> Chunk | None:
        """Return a decoded chunk with records left, if there is one now."""
        while True:
            self._raise_if_stopped(only)
            chunk = self.buffer.current(only)
            if chunk is None:
                return None
            if not chunk.loaded:
                if not self._load(chunk):
                    if chunk.dropped:
                        continue
                    return None
                self.feed.spend(0, chunk.size)
            if chunk.remaining:
                return chunk
            self.buffer.finish(chunk)

    async def _pick(self, only: Only) -> Chunk:
        while True:
            self._raise_if_stopped(only)
            chunk = self.buffer.current(only)
            if chunk is not None:
                return chunk
            self._wants.append(only)
            try:
                self._on_wait()
                await self.buffer.changed()
            finally:
                del self._wants[next(index for index, want in enumerate(self._wants) if want is only)]
            self.feed.rested()

    async def _take_turn(self) -> None:
        """Give the loop the turn that is due, to read sockets and run other tasks.

        Not within a timeout's scope: a timeout of 0 would always cancel it and deliver no record.
        """
        await anyio.lowlevel.checkpoint()
        self.feed.rested()

    async def _make_ready(self, chunk: Chunk, *, records: bool = True) -> None:
        await self._decoder.make_ready(chunk, records=records)
        self.feed.rested()

    def _raise_if_stopped(self, only: Only) -> None:
        """Raise the error that stops the reader or one of its partitions, if there is one."""
        if self._ended is not None:
            raise self._ended
        if isinstance(only, Share) and only.closed:
            raise ClosedError("the stream was closed")
        if self._notice is not None:
            notice, self._notice = self._notice, None
            raise notice
        state = self.buffer.failed(only)
        if state is None or state.error is None:
            return
        error = state.error
        state.clear_error()
        # Raised once; then fetching is retried, in case the cause was fixed.
        state.attempt.postpone(asyncio.get_running_loop().time() + self._config.retry_backoff)
        self._on_room(state)
        raise error

    # --- decoding -----------------------------------------------------------------------------------------------------

    def _on_add(self, chunk: Chunk) -> None:
        self._decoder.on_add(chunk)

    def _load(self, chunk: Chunk) -> bool:
        """Decode a chunk. False if it is not ready, if its records turn out to need async
        deserializers, or if it is corrupt: then it is dropped, and its partition fails."""
        try:
            if self._decoder.decode(chunk):
                return True
            if not self._decoder.is_ready(chunk):
                return False
            records = chunk.batch.records(chunk.start)
        except CorruptRecord as error:
            self._on_unreadable(chunk, error)
            return False
        if self._plain:
            chunk.load(records)
            if len(records) >= COUNTED_FROM:
                self.buffer.loaded(chunk)
            return True
        try:
            done = self._deserialization.apply(records)
        except CoroutineReturned:
            return False
        self._on_deserialized(chunk, done)
        return True

    def _on_deserialized(self, chunk: Chunk, done: Deserialized) -> None:
        chunk.load(done.records)
        self.buffer.loaded(chunk)
        if done.failure is not None:
            # The remaining records are fetched again after the reader has raised the error.
            state: PartitionState = chunk.partition
            state.attempt.interrupt()
            self.buffer.cut(chunk, done.failure.offset)
            self.buffer.fail(state, done.failure)

    def _on_unreadable(self, chunk: Chunk, error: KafkaError) -> None:
        """Fail the partition of an undecodable chunk; its position stays before the chunk."""
        if chunk.dropped:
            return
        state: PartitionState = chunk.partition
        state.attempt.interrupt()
        self.buffer.drop(state)
        if isinstance(error, CorruptRecord):
            error = corrupt_record(state, error, chunk.start, chunk.batch.next_offset)
        self.buffer.fail(state, error)


class BatchIterator(Generic[K, V]):
    """Iterates over batches. May be dropped at any time: it holds no data."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch[K, V]:
        batch = await self._reader.batch()
        if batch is None:
            raise StopAsyncIteration
        return batch


def _add_to(groups: Groups, tp: TopicPartition, records: list[Any]) -> None:
    if tp in groups:
        groups[tp] += records
    elif records:
        groups[tp] = records


def _not_started() -> float:
    raise ClosedError("the consumer was not started")
