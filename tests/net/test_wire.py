"""The protocol object of one transport: loss in its uglier forms, and how chunks are written."""

from __future__ import annotations

import asyncio
import gc
import struct
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.errors import ConnectionFailed, KafkaError
from aiokwire.net import Address
from aiokwire.net.wire import Wire
from aiokwire.net.writing import JOIN_BELOW, join_small
from aiokwire.protocol.messages import metadata

Serve = Callable[..., AbstractAsyncContextManager[Address]]

ASK = metadata.MetadataRequest(topics=[])


def new_wire() -> Wire:
    return Wire(who="peer", client_id=None, max_frame_size=1000, write_high_water=1000, stall_timeout=1.0)


async def silence(talk: Any) -> None:
    await talk.until_closed()


async def test_a_transport_that_was_closed_under_us_is_a_lost_connection(serve: Serve) -> None:
    """uvloop answers a write to a closed transport by RuntimeError, asyncio by silence."""
    async with serve(silence) as address:
        transport, wire = await asyncio.get_running_loop().create_connection(new_wire, *address)
        failures: list[KafkaError] = []
        wire.on_fail = failures.append
        waiting = wire.send(ASK, 1, timeout=5)
        transport.abort()
        later = wire.send(ASK, 1, timeout=5)
        for future in (waiting, later):
            with pytest.raises(ConnectionFailed):
                await future
        await wire.wait_gone()
        assert [type(error) for error in failures] == [ConnectionFailed]
        with pytest.raises(ConnectionFailed):
            wire.send(ASK, 1, timeout=5)


async def test_a_wire_fails_once(serve: Serve) -> None:
    async with serve(silence) as address:
        _, wire = await asyncio.get_running_loop().create_connection(new_wire, *address)
        failures: list[KafkaError] = []
        wire.on_fail = failures.append
        first = ConnectionFailed("first")
        wire.fail(first)
        wire.fail(ConnectionFailed("second"))
        await wire.wait_gone()
        assert failures == [first]
        assert wire.error is first


async def test_half_an_answer_is_freed_when_its_connection_is_lost(serve: Serve) -> None:
    size = 30 << 20
    hang_up = anyio.Event()

    async def half_an_answer(talk: Any) -> None:
        talk.writer.write(struct.pack(">i", size) + bytes(1 << 16))
        await hang_up.wait()

    def large_wire() -> Wire:
        return Wire(who="peer", client_id=None, max_frame_size=2 * size, write_high_water=1000, stall_timeout=1.0)

    gc.disable()  # else a collection hides what a cycle keeps
    tracemalloc.start()
    try:
        async with serve(half_an_answer) as address:
            _, wire = await asyncio.get_running_loop().create_connection(large_wire, *address)
            with anyio.fail_after(10):
                while tracemalloc.get_traced_memory()[0] < size:
                    await anyio.lowlevel.checkpoint()
                hang_up.set()
                await wire.wait_gone()
            assert "in the middle of an answer" in str(wire.error)
            assert tracemalloc.get_traced_memory()[0] < size // 2
    finally:
        tracemalloc.stop()
        gc.enable()


def test_small_neighbours_are_joined_and_large_chunks_stay_as_they_are() -> None:
    large = bytes(JOIN_BELOW)
    pieces = join_small([b"a", b"b", large, b"c", large, large, b"d", memoryview(b"e")])
    assert pieces == [b"ab", large, b"c", large, large, b"de"]
    assert [piece for piece in pieces if piece is large] == [large] * 3


def test_one_chunk_is_written_as_it_is() -> None:
    chunks = [b"abc"]
    assert join_small(chunks) is chunks
