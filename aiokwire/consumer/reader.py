"""From buffered batches to records in the user's hands: waiting, decoding, taking.

Nothing is taken before it can be returned in the same turn of the event loop, so a cancelled call loses no record. The
position of a partition moves when its records are taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final

import anyio

from aiokwire.consumer._iterate import Chunk, Feed
from aiokwire.consumer.batches import Batch, deserialize
from aiokwire.consumer.config import ConsumerConfig
from aiokwire.consumer.damage import damaged
from aiokwire.consumer.fetch_buffer import FetchBuffer, Only
from aiokwire.consumer.in_hand import InHand
from aiokwire.consumer.positions import PartitionState
from aiokwire.consumer.shares import Held, Share
from aiokwire.errors import ClosedError, CorruptRecord, KafkaError
from aiokwire.records import Columns
from aiokwire.threads import run_in_thread
from aiokwire.types import TopicPartition

# A smaller batch is decompressed faster than a thread is reached.
THREAD_FROM_BYTES: Final = 32 * 1024
# What columns take in one go, and a batch beyond it: filling them blocks the loop for some milliseconds.
ARROW_BYTES: Final = 8 * 1024 * 1024


class AnyOf:
    """What is in one of several containers."""

    def __init__(self, choices: list[Only]) -> None:
        self._choices = choices

    def __contains__(self, tp: object) -> bool:
        return any(choice is None or tp in choice for choice in self._choices)


class Reader:
    """The waiting side of a `FetchBuffer`."""

    def __init__(
        self, config: ConsumerConfig, on_room: Callable[[PartitionState], None], on_wait: Callable[[], None]
    ) -> None:
        """`on_room` is called when a partition may be fetched again: it was drained, or its error was told; `on_wait`
        when a reader finds nothing and begins to wait."""
        self.feed = Feed(self._advance)
        self.buffer = FetchBuffer(self.feed, on_room)
        self._on_room = on_room
        self._on_wait = on_wait
        self._config = config
        self._plain = config.key_deserializer is None and config.value_deserializer is None
        self._ended: KafkaError | None = None  # closed, or failed for good
        self._closed = False  # by its user
        self._loading: dict[Chunk, anyio.Event] = {}  # chunks that a thread works on
        self.in_hand = InHand(self.feed)
        self._notice: KafkaError | None = None  # to be raised once, whatever is read
        self._wants: list[Only] = []  # what each reader that waits was asked for

    def start(self) -> None:
        """Bind to the running loop."""
        self.feed.bind(asyncio.get_running_loop().time)

    def close(self) -> None:
        """The user closed the consumer: loops over it end, other calls fail."""
        self._closed = True
        self.end(ClosedError("the consumer was closed"))

    def end(self, error: KafkaError) -> None:
        """Hand nothing over any more: every reader gets `error`, those that wait now and those that come later."""
        if self._ended is None:
            self._ended = error
        self.feed.current = None
        self.buffer.notify()

    def tell(self, error: KafkaError) -> None:
        """Have the next await of a reader raise `error`, once."""
        self._notice = error
        self.feed.current = None
        self.buffer.notify()

    @property
    def wanted(self) -> Only:
        """What the readers that wait were asked for, together: what memory is for when it is full."""
        if len(self._wants) == 1:
            return self._wants[0]
        return None if any(want is None for want in self._wants) else AnyOf(list(self._wants))

    @property
    def ended(self) -> KafkaError | None:
        """Why nothing is handed over any more."""
        return self._ended

    # --- the ways to read ---------------------------------------------------------------------------------------------

    async def one(self) -> Any:
        """The next record."""
        self.in_hand.came_back()
        chunk = await self._ready(None)
        return self._take_one(chunk)

    async def many(self, limit: int, timeout: float | None, only: Only) -> list[Any]:
        """Up to `limit` records: what is at hand, else what comes first within `timeout` seconds."""
        self.in_hand.came_back()
        if self.feed.due:
            await self._rest()
        self._raise_if_stopped(only)
        records = self._take_many(limit, only)
        if records:
            return records
        with anyio.move_on_after(timeout):
            await self._ready(only)
        return self._take_many(limit, only)

    async def columns(self, limit: int, timeout: float | None, only: Only) -> Columns:
        """Up to `limit` records as columns, undecoded otherwise; as `many`, but by whole batches."""
        self.in_hand.came_back()
        if self.feed.due:
            await self._rest()
        self._raise_if_stopped(only)
        columns = self._take_columns(limit, only)
        with anyio.move_on_after(timeout):
            while not len(columns):
                chunk = await self._pick(only)
                if self._needs_thread(chunk):
                    await self._decompress(chunk)
                columns = self._take_columns(limit, only)
        return columns

    async def batch(self) -> Batch[Any, Any] | None:
        """The next batch, decompressed; what was already handed over of it is left out. None: the user closed."""
        self.in_hand.came_back()
        if self.feed.due:
            await self._rest()
        while True:
            try:
                chunk = await self._pick(None)
            except ClosedError:
                if self._closed:
                    return None
                raise
            if not chunk.loaded and chunk.batch.needs_decompression:
                await self._decompress(chunk)
                continue
            batch: Batch[Any, Any] = Batch(chunk.batch, chunk.partition.tp, chunk.position, chunk.end, self._config)
            self.feed.spend(0, chunk.size)
            self.in_hand.took_list(chunk.partition)
            self.buffer.finish(chunk)
            if batch.count:
                return batch

    async def next_of(self, share: Share) -> Any:
        """The next record of a stream."""
        held = share.put_back()
        self.in_hand.stream_came_back(held)
        if held is not None and held.state.tp not in share.partitions:
            self.buffer.notify()  # whoever has it now could not go on
        try:
            chunk = await self._ready(share)
        except ClosedError:
            if self._closed or share.closed:
                raise StopAsyncIteration from None
            raise
        state: PartitionState = chunk.partition
        place = state.place
        assert place is not None  # it has a chunk
        if (other := share.put_back()) is not None:
            self.in_hand.put_back(other)  # two tasks share the stream: what the other has is not looked after
        held = Held(state, place)
        share.take(held)
        self.in_hand.took_for_stream(held)
        self.feed.spend(1, 0)
        return chunk.take_one()

    async def position(self, state: PartitionState) -> int:
        """A partition's position, as soon as it has one."""
        while True:
            position = state.position
            if self._ended is None or position is None:  # a listener may ask for it while the consumer is closed
                self._raise_if_stopped((state.tp,))
            if position is not None:
                return position
            await self.buffer.changed()

    async def until_assigned(self, states: Collection[TopicPartition]) -> None:
        """Wait until there is a partition; whoever adds one notifies the buffer.

        Raises: what a reader would.
        """
        while not states:
            self._raise_if_stopped(None)
            await self.buffer.changed()

    async def _advance(self) -> Any:
        """What `async for` waits for when no record is at hand."""
        self.in_hand.came_back()
        try:
            chunk = await self._ready(None)
        except ClosedError:
            if self._closed:
                raise StopAsyncIteration from None
            raise
        self.feed.current = chunk
        return self._take_one(chunk)

    # --- taking: no await in here -------------------------------------------------------------------------------------

    def _take_one(self, chunk: Chunk) -> Any:
        self.feed.spend(1, 0)
        self.in_hand.took_one(chunk)
        return chunk.take_one()

    def _take_many(self, limit: int, only: Only) -> list[Any]:
        taken: list[Any] = []
        room = limit
        size = 0
        while room > 0 and self._ended is None:
            chunk = self.buffer.current(only)
            if chunk is None:
                break
            if not chunk.loaded:
                if self._needs_thread(chunk) or not self._load(chunk):
                    break
                size += chunk.size
            self.in_hand.took_list(chunk.partition)
            some = chunk.take(room)
            room -= len(some)
            if not chunk.remaining:
                self.buffer.finish(chunk)
            if taken:
                taken += some
            else:
                taken = some
        self.feed.spend(len(taken), size)
        return taken

    def _take_columns(self, limit: int, only: Only) -> Columns:
        columns = Columns()
        spent = 0
        while columns.size < ARROW_BYTES and self._ended is None:
            chunk = self.buffer.current(only)
            if chunk is None or self._needs_thread(chunk):
                break
            if len(columns) and len(columns) + max(chunk.batch.count, 0) > limit:
                break
            try:
                chunk.batch.add_to(columns, chunk.position, chunk.end)
            except CorruptRecord as error:
                self._fail(chunk, error)
                break
            spent += chunk.size
            self.in_hand.took_list(chunk.partition)
            self.buffer.finish(chunk)
        self.feed.spend(0, spent)
        return columns

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def _ready(self, only: Only) -> Chunk:
        """A decoded chunk with something left, at the latest when one comes."""
        if self.feed.due:
            await self._rest()
        while True:
            chunk = await self._pick(only)
            if not chunk.loaded:
                if self._needs_thread(chunk):
                    await self._decompress(chunk)
                    continue
                if not self._load(chunk):
                    continue
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

    async def _rest(self) -> None:
        """Give the loop its turn: sockets are read then, and other tasks run."""
        await anyio.lowlevel.checkpoint()
        self.feed.rested()

    def _raise_if_stopped(self, only: Only) -> None:
        """Tell the reader why it, or one of its partitions, cannot go on."""
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
        error, state.error = state.error, None
        # Told once; then it is tried again, in case that the cause went away.
        state.retry_at = asyncio.get_running_loop().time() + self._config.retry_backoff_ms / 1000
        self._on_room(state)
        raise error

    # --- decoding -----------------------------------------------------------------------------------------------------

    def _needs_thread(self, chunk: Chunk) -> bool:
        return not chunk.loaded and chunk.size >= THREAD_FROM_BYTES and chunk.batch.needs_decompression

    async def _decompress(self, chunk: Chunk) -> None:
        """Decompress off the loop; a second reader of the same chunk waits for the first."""
        busy = self._loading.get(chunk)
        if busy is not None:
            await busy.wait()
            return
        done = self._loading[chunk] = anyio.Event()
        try:
            await run_in_thread(chunk.batch.decompress)
        except CorruptRecord as error:
            self._fail(chunk, error)
        finally:
            del self._loading[chunk]
            done.set()
        self.feed.rested()

    def _load(self, chunk: Chunk) -> bool:
        """Decode a chunk; False when it cannot be, and its partition has the error."""
        state: PartitionState = chunk.partition
        try:
            records = chunk.batch.records(chunk.start)
        except CorruptRecord as error:
            self._fail(chunk, error)
            return False
        if self._plain:
            chunk.load(records)
            return True
        done, failure = deserialize(records, self._config)
        chunk.load(done)
        if failure is not None:
            # The rest is read again when the reader has been told.
            state.interrupt()
            self.buffer.cut(chunk, failure.offset)
            state.fail(failure)
            self.buffer.report(state)
        return True

    def _fail(self, chunk: Chunk, error: CorruptRecord) -> None:
        """A chunk is unreadable: the position stays before it."""
        if chunk.dropped:
            return
        state: PartitionState = chunk.partition
        state.interrupt()
        self.buffer.drop(state)
        state.fail(damaged(state, error, chunk.start, chunk.batch.next_offset))
        self.buffer.report(state)
