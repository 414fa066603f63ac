"""The protocol object of one transport: unusual connection losses, and writes of chunks."""

from __future__ import annotations

import asyncio
import gc
import struct
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.errors import ConnectionFailed, KafkaError, ProtocolViolation
from aiokwire.net import Address
from aiokwire.net.wire import Wire
from aiokwire.net.writing import JOIN_BELOW, join_small
from aiokwire.protocol import encode_response
from aiokwire.protocol.messages import metadata

Serve = Callable[..., AbstractAsyncContextManager[Address]]

ASK = metadata.MetadataRequest(topics=[])


def new_wire() -> Wire:
    return Wire(who="peer", client_id=None, max_frame_size=1000, write_high_water=1000, stall_timeout=1.0)


async def silence(talk: Any) -> None:
    await talk.until_closed()


async def test_a_transport_that_was_closed_under_us_is_a_lost_connection(serve: Serve) -> None:
    """uvloop raises RuntimeError for a write to a closed transport, asyncio ignores it."""
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


async def test_half_a_response_is_freed_when_its_connection_is_lost(serve: Serve) -> None:
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


# --- large responses --------------------------------------------------------------------------------------------------


def metadata_of(topics: int, correlation_id: int) -> bytes:
    """Return a Metadata response, version 1, with `topics` topics."""
    answer = metadata.MetadataResponse(topics=[metadata.MetadataResponseTopic(name="t")] * topics)
    return b"".join(encode_response(answer, 1, correlation_id))


def large_wire() -> Wire:
    return Wire(who="peer", client_id=None, max_frame_size=64 << 20, write_high_water=1000, stall_timeout=5.0)


async def decoding() -> None:
    """Wait until a thread decodes."""
    with anyio.fail_after(20):
        while not any(thread.name == "aiokwire decoding" for thread in threading.enumerate()):
            await anyio.lowlevel.checkpoint()


async def test_a_response_of_many_elements_is_decoded_in_a_thread_and_those_behind_it_wait(serve: Serve) -> None:
    sizes = [200_000, 1, 100_000, 1, 1]

    async def answer_all(talk: Any) -> None:
        for number, topics in enumerate(sizes):
            talk.writer.write(metadata_of(topics, number))
        await talk.until_closed()

    async with serve(answer_all) as address:
        _, wire = await asyncio.get_running_loop().create_connection(large_wire, *address)
        answered: list[int] = []
        futures = [wire.send(ASK, 1, timeout=20) for _ in sizes]

        def note(_: object, number: int) -> None:
            answered.append(number)

        for number, future in enumerate(futures):
            future.add_done_callback(partial(note, number=number))
        await decoding()
        assert len(wire) == len(sizes), "the loop runs, and nothing is answered out of order"
        found = [len((await future).topics) for future in futures]
        assert found == sizes
        assert answered == sorted(answered)
        wire.fail(ConnectionFailed("done"))
        await wire.wait_gone()


async def test_a_response_of_too_many_elements_fails_its_request_only(serve: Serve) -> None:
    async def answer_all(talk: Any) -> None:
        talk.writer.write(metadata_of(700_000, 0) + metadata_of(1, 1))
        await talk.until_closed()

    async with serve(answer_all) as address:
        _, wire = await asyncio.get_running_loop().create_connection(large_wire, *address)
        first, second = (wire.send(ASK, 1, timeout=20) for _ in range(2))
        with pytest.raises(ProtocolViolation, match=r"array of 700000 elements .*receive_message_max_bytes"):
            await first
        assert len((await second).topics) == 1
        wire.fail(ConnectionFailed("done"))
        await wire.wait_gone()


async def test_a_wire_that_fails_while_a_thread_decodes_fails_all_its_requests(serve: Serve) -> None:
    async def answer_all(talk: Any) -> None:
        talk.writer.write(metadata_of(200_000, 0) + metadata_of(1, 1))
        await talk.until_closed()

    async with serve(answer_all) as address:
        _, wire = await asyncio.get_running_loop().create_connection(large_wire, *address)
        futures = [wire.send(ASK, 1, timeout=20) for _ in range(2)]
        await decoding()
        wire.fail(ConnectionFailed("closed by the test"))
        for future in futures:
            with pytest.raises(ConnectionFailed, match="closed by the test"):
                await future
        await wire.wait_gone()


async def test_a_large_response_to_a_cancelled_request_is_released_by_a_thread(serve: Serve) -> None:
    async def answer_all(talk: Any) -> None:
        talk.writer.write(metadata_of(200_000, 0) + metadata_of(1, 1))
        await talk.until_closed()

    async with serve(answer_all) as address:
        _, wire = await asyncio.get_running_loop().create_connection(large_wire, *address)
        given_up, wanted = (wire.send(ASK, 1, timeout=20) for _ in range(2))
        await decoding()
        given_up.cancel()
        assert len((await wanted).topics) == 1
        wire.fail(ConnectionFailed("done"))
        await wire.wait_gone()
