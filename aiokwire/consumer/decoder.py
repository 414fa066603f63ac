"""Prepares batches whose decoding would take too long for one turn of the event loop.

    fetched -> decompressed -> split into parts -> (async deserializers) -> ready for the reader

Large batches are decompressed and split in threads, ahead of the reader: one batch at a time while
`fetch_memory` has room, besides those that readers wait for. The client's tasks do the work, not
the call that waits for it: if that call is cancelled or times out, the work finishes for the next
call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio

from aiokwire.consumer._iterate import Chunk
from aiokwire.consumer.deserialization import Deserialization, Deserialized
from aiokwire.consumer.fetch_buffer import COUNTED_FROM, FetchBuffer
from aiokwire.consumer.positions import PartitionState
from aiokwire.errors import CorruptRecord, KafkaError
from aiokwire.records import RecordBatch
from aiokwire.threads import run_in_thread

# A smaller batch is decompressed inline, which is faster than starting a thread, unless it exceeds INLINE_BYTES then.
THREAD_FROM_BYTES: Final = 32 * 1024
INLINE_BYTES: Final = 512 * 1024
# A batch with more records or bytes is split: a part is decoded in one turn of the loop, in some milliseconds. With
# deserializers a record takes longer; with async ones no record of a part is delivered until all of it are done.
PART_RECORDS: Final = 16_384
PART_RECORDS_DESERIALIZED: Final = 2_048
PART_RECORDS_ASYNC: Final = 256
PART_BYTES: Final = 4 * 1024 * 1024
# The number of batches that are prepared ahead of the reader.
AHEAD: Final = 8


# Starts a background task of the client, as `Client.spawn`.
Spawn = Callable[..., None]


class Decoder:
    """Prepares the chunks of a `FetchBuffer`."""

    def __init__(
        self,
        buffer: FetchBuffer,
        deserialization: Deserialization,
        memory: int,
        on_deserialized: Callable[[Chunk, Deserialized], None],
        on_failure: Callable[[Chunk, KafkaError], None],
    ) -> None:
        """`memory` bounds the bytes that are prepared ahead; `on_deserialized` receives the result
        of async deserializers, `on_failure` is called when a chunk cannot be read."""
        self._buffer = buffer
        self._deserialization = deserialization
        self._is_plain = not deserialization.is_needed
        self.part_records: int = 0  # the most records that are decoded in one go
        self._set_part()
        self._memory = memory
        self._on_deserialized = on_deserialized
        self._on_failure = on_failure
        self._spawn: Spawn | None = None
        self._busy: dict[Chunk, anyio.Event] = {}  # chunks that wait for a task, or that a task processes
        self._demanded: list[Chunk] = []  # those that wait
        self._woken = anyio.Event()
        self._runs = False  # the task that works ahead runs
        self._is_free = False  # it waits for work
        self._deserializes_ahead = False  # readers take records, not columns

    def start(self, spawn: Spawn) -> None:
        """Use the client's tasks."""
        self._spawn = spawn

    def release(self) -> None:
        """Wake waiting readers, because the consumer ended."""
        for done in self._busy.values():
            done.set()

    # --- for the reader -----------------------------------------------------------------------------------------------

    def is_ready(self, chunk: Chunk, *, records: bool = True) -> bool:
        """Return whether a chunk can be decoded in this turn of the loop; decompresses small ones.
        Without `records`, for columns, deserializers do not matter."""
        if self._is_plain and chunk.is_short(self.part_records, PART_BYTES):
            if self._runs:
                self._woken.set()  # there is room for the next
            return True
        if chunk.loaded:
            return True
        if self._busy and chunk in self._busy:
            return False
        if self._runs:
            self._woken.set()
        if records and self._deserialization.is_async:
            return False
        batch: RecordBatch = chunk.batch
        if batch.needs_decompression and not self._is_unpacked(chunk):
            return False
        return not batch.is_longer_than(self.part_records, PART_BYTES)

    def decode(self, chunk: Chunk) -> bool:
        """Decode a chunk that needs neither decompression nor deserializers; False for others.

        Raises: CorruptRecord: the bytes are corrupt.
        """
        count = chunk.decode(self.part_records, PART_BYTES) if self._is_plain else -1
        if count < 0:
            return False
        if count >= COUNTED_FROM:
            self._buffer.loaded(chunk)
        if self._runs:
            self._woken.set()
        return True

    async def make_ready(self, chunk: Chunk, *, records: bool = True) -> None:
        """Wait until a chunk for which `is_ready` returned False was processed."""
        self._deserializes_ahead = records
        self._set_part()  # a plain deserializer may have turned out to return coroutines
        done = self._busy.get(chunk)
        if done is None:
            done = self._demand(chunk)
        await done.wait()

    def _demand(self, chunk: Chunk) -> anyio.Event:
        assert self._spawn is not None  # reading needs a client that was started
        if self._is_free:
            self._woken.set()
        elif self._runs:
            self._spawn(self._run_demanded, name="decode a batch")
        else:
            self._spawn(self._run_ahead, name="decode ahead")
            self._runs = True
        self._demanded.append(chunk)
        self._is_free = False
        done = self._busy[chunk] = anyio.Event()
        return done

    # --- the tasks ----------------------------------------------------------------------------------------------------

    async def _run_ahead(self) -> None:
        """Process the chunks that readers wait for, else those delivered next, until cancelled."""
        while True:
            self._woken = anyio.Event()
            chunk = self._next()
            if chunk is not None:
                await self._process(chunk)
                continue
            self._is_free = True
            await self._woken.wait()
            self._is_free = False

    async def _run_demanded(self) -> None:
        """Process one chunk that a reader waits for, while the other task is busy."""
        if self._demanded:
            await self._process(self._demanded.pop(0))

    def _next(self) -> Chunk | None:
        if self._demanded:
            return self._demanded.pop(0)
        if self._buffer.held >= self._memory:
            return None
        for chunk in self._buffer.upcoming(AHEAD):
            if chunk not in self._busy and self._wants_work(chunk):
                self._busy[chunk] = anyio.Event()
                return chunk
        return None

    def _wants_work(self, chunk: Chunk) -> bool:
        if chunk.loaded:
            return False
        batch: RecordBatch = chunk.batch
        if not self._is_unpacked(chunk):
            return True
        return (self._deserialization.is_async and self._deserializes_ahead) or self._is_long(batch)

    def on_add(self, chunk: Chunk) -> None:
        """Start work ahead: chunks were added, this one first."""
        if self._runs:
            self._woken.set()
        elif self._spawn is not None and self._wants_work(chunk):
            self._spawn(self._run_ahead, name="decode ahead")
            self._runs = True

    async def _process(self, chunk: Chunk) -> None:
        try:
            if not chunk.dropped:
                await self._advance(chunk)
        except (KafkaError, MemoryError) as error:
            self._on_failure(chunk, error if isinstance(error, KafkaError) else _no_memory(chunk, error))
        finally:
            self._busy.pop(chunk).set()

    async def _advance(self, chunk: Chunk) -> None:
        """Decompress and split a chunk, or deserialize it."""
        if not self._is_unpacked(chunk) or self._is_long(chunk.batch):
            parts = await run_in_thread(self._unpack, chunk.batch)
            if not chunk.dropped:
                self._buffer.unpacked(chunk, parts)
            if parts or not self._deserialization.is_async:
                return
        if self._deserialization.is_async and self._deserializes_ahead and not chunk.dropped:
            done = await self._deserialization.apply_async(chunk.batch.records(chunk.start))
            if not chunk.dropped:
                self._on_deserialized(chunk, done)

    def _unpack(self, batch: RecordBatch) -> list[RecordBatch]:
        """Decompress a batch, in a thread; return its parts if it must be split."""
        batch.decompress()
        return batch.split(self.part_records, PART_BYTES) if self._is_long(batch) else []

    def _is_unpacked(self, chunk: Chunk) -> bool:
        batch: RecordBatch = chunk.batch
        if not batch.needs_decompression:
            return True
        return chunk.size < THREAD_FROM_BYTES and batch.decompress_within(INLINE_BYTES)

    def _is_long(self, batch: RecordBatch) -> bool:
        return batch.is_longer_than(self.part_records, PART_BYTES)

    def _set_part(self) -> None:
        if self._deserialization.is_async:
            self.part_records = PART_RECORDS_ASYNC
        else:
            self.part_records = PART_RECORDS_DESERIALIZED if self._deserialization.is_needed else PART_RECORDS


def _no_memory(chunk: Chunk, error: MemoryError) -> KafkaError:
    state: PartitionState = chunk.partition
    failure = CorruptRecord(
        f"not enough memory to decompress a batch of {chunk.size} bytes; lower max_decompressed_bytes or fetch_memory",
        topic=state.tp.topic,
        partition=state.tp.partition,
        offset=chunk.start,
    )
    failure.__cause__ = error
    return failure
