"""A batch of millions of tiny records is decoded in parts, with bounded memory and turns."""

from __future__ import annotations

import asyncio
import gc
import struct
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest

from aiokwire.consumer import Consumer
from aiokwire.consumer.decoder import PART_RECORDS
from aiokwire.records import Columns, columns_to_arrow, compress, crc32c
from aiokwire.types import Compression, TopicPartition
from tests.consumer.conftest import Peer
from tests.consumer.groups import QUICK

columns_to_arrow(Columns())  # importing pyarrow takes longer than a turn is allowed to

T0 = TopicPartition("t", 0)
COUNT = 10_500_000
# Seconds in one turn. 5 to 12 ms on a quiet machine; on a shared core other processes evict the cache.
MOST_CPU = 0.05
pytestmark = pytest.mark.timeout(90)
MIB = 1 << 20
# Length, attributes, timestamp delta, offset delta, key, value (both null), headers.
TINY = bytes((12, 0, 0, 0, 1, 1, 0))


def huge_batch(count: int, codec: Compression) -> bytes:
    """Return a batch of `count` records of 7 bytes each; compressed, it has kilobytes."""
    payload = compress(codec, TINY * count)
    head = struct.pack(">hiqqqhii", int(codec), count - 1, 1000, 1000, -1, -1, -1, count)
    body = head + payload
    return struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body)) + body


@pytest.fixture(scope="module")
def bomb() -> bytes:
    data = huge_batch(COUNT, Compression.ZSTD)
    assert len(data) < 10_000
    return data


@pytest.fixture
async def peer(make_peer: Callable[..., Any], bomb: bytes) -> AsyncIterator[Peer]:
    async with make_peer() as peer:
        peer.log("t").add(bomb, COUNT)
        yield peer


def reader_of(peer: Peer, **options: Any) -> Consumer[Any, Any]:
    return Consumer(partitions=[T0], bootstrap_servers=peer.bootstrap_servers, **{**QUICK, **options})


class Turns:
    """The longest turn of the loop, in CPU seconds of its thread.

    The garbage collector, which traverses all of pytest, is not counted.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._before = time.thread_time()
        self._handle: asyncio.Handle | None = None

    def _turn(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._before)
        self._before = now
        self._handle = asyncio.get_running_loop().call_soon(self._turn)

    def __enter__(self) -> Turns:
        gc.disable()
        self._before = time.thread_time()
        self._turn()
        return self

    def __exit__(self, *_: object) -> None:
        gc.enable()
        now = time.thread_time()
        self.longest = max(self.longest, now - self._before)
        if self._handle is not None:
            self._handle.cancel()


async def by_getone(reader: Consumer[Any, Any]) -> int:
    for _ in range(40_000):
        await reader.getone()
    return 40_000


async def by_getmany(reader: Consumer[Any, Any]) -> int:
    count = 0
    while count < 2_000_000:
        count += len(await reader.getmany(max_records=10**9))
    return count


async def by_loop(reader: Consumer[Any, Any]) -> int:
    count = 0
    async for _ in reader:
        count += 1
        if count == 200_000:
            break
    return count


async def by_batches(reader: Consumer[Any, Any]) -> int:
    count = 0
    async for batch in reader.batches():
        assert len(batch.records()) == batch.count <= PART_RECORDS
        count += batch.count
        if count > 1_000_000:
            break
    return count


async def by_arrow(reader: Consumer[Any, Any]) -> int:
    count = 0
    while count < 2_000_000:
        count += (await reader.getarrow()).num_rows
    return count


async def by_streams(reader: Consumer[Any, Any]) -> int:
    stream, other = reader.streams(2)
    chosen = stream if stream.assignment else other
    count = 0
    async for _ in chosen:
        count += 1
        if count == 40_000:
            break
    return count


WAYS = [by_getone, by_getmany, by_loop, by_batches, by_arrow, by_streams]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_ten_million_records_of_6_kb_take_bounded_memory_and_short_turns(
    peer: Peer, way: Callable[[Consumer[Any, Any]], Awaitable[int]]
) -> None:
    async with reader_of(peer) as reader:
        tracemalloc.start()
        try:
            with anyio.fail_after(60):
                await way(reader)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 140 * MIB  # 70 MiB for the decompressed batch, about 60 MiB for the interpreter
        # The batch, and the response of a fetch sent before the limit grew.
        assert 7 * COUNT <= reader.memory_in_use < 7 * COUNT + 34 * MIB


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_ten_million_records_of_6_kb_do_not_block_the_loop(
    peer: Peer, way: Callable[[Consumer[Any, Any]], Awaitable[int]]
) -> None:
    async with reader_of(peer) as reader:
        with anyio.fail_after(60), Turns() as turns:
            await way(reader)
        assert turns.longest < MOST_CPU


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
async def test_every_record_of_a_split_batch_is_returned_once(
    make_peer: Callable[..., Any], codec: Compression
) -> None:
    count = 5 * PART_RECORDS + 17
    async with make_peer() as peer:
        peer.log("t").append(*(b"%d" % number for number in range(count)), compression=codec)
        peer.log("t").append(b"last")
        async with reader_of(peer) as reader:
            got: list[Any] = []
            reader.seek(T0, 2 * PART_RECORDS + 5)
            with anyio.fail_after(60):
                while not got or got[-1] != b"last":
                    got.append((await reader.getone()).value)
                    got += [record.value for record in await reader.getmany(max_records=20_000, timeout=0)]
                    assert await reader.position(T0) == 2 * PART_RECORDS + 5 + len(got)
            assert got == [*(b"%d" % number for number in range(2 * PART_RECORDS + 5, count)), b"last"]
            await reader.seek_to_beginning()
            with anyio.fail_after(60):
                async for batch in reader.batches():
                    assert batch.base_offset == batch.records()[0].offset
                    assert batch.count == len(batch.records()) == batch.to_arrow().num_rows
                    if batch.next_offset == count + 1:
                        break
