"""Limits of the broker: connections in total and by address, memory of large requests."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.peers import RequestMemory
from aiokwire.protocol import encode_request
from aiokwire.protocol.messages import api_versions, produce
from tests.broker.raw import PATIENCE, RawClient, batch, produce_one, produce_request

LARGE = 200_000  # bytes of a record


class Reader:
    """A connection that waits for memory."""

    proceeded = False

    def proceed(self) -> None:
        self.proceeded = True


def test_memory_is_taken_while_any_is_left_and_given_in_order() -> None:
    memory, first, second = RequestMemory(100), Reader(), Reader()
    assert memory.take(Reader(), 99)
    assert memory.take(Reader(), 500), "any memory left admits one more"
    assert not memory.take(first, 50)
    assert not memory.take(second, 1)
    memory.give_back(500)
    assert (first.proceeded, second.proceeded, memory.size) == (True, False, 149)
    memory.discard(second)
    memory.give_back(149)
    assert (second.proceeded, memory.size) == (False, 0)


def test_a_request_waits_behind_those_that_came_before_it() -> None:
    memory, first, small = RequestMemory(100), Reader(), Reader()
    assert memory.take(Reader(), 100)
    assert not memory.take(first, 10)
    memory.size = 0  # as if it had room: the line still counts
    assert not memory.take(small, 1)


def test_without_a_limit_nothing_waits() -> None:
    memory = RequestMemory(-1)
    assert all(memory.take(Reader(), 1 << 40) for _ in range(3))


async def test_a_large_request_waits_until_another_one_is_handled() -> None:
    async with Broker(topics={"t": 1}, queued_max_request_bytes=1) as broker:
        first, second = await RawClient.connect(broker), await RawClient.connect(broker)
        frame = b"".join(encode_request(produce_request("t", batch([b"1" * LARGE])), 9, 1, "raw"))
        first.writer.write(frame[:-1])
        await _until(lambda: broker.state.request_memory.size > LARGE)
        second.send(produce_request("t", batch([b"2" * LARGE])), 9)
        other = await RawClient.connect(broker)
        for _ in range(20):
            await other.ask(api_versions.ApiVersionsRequest(), 0)  # small requests do not wait
        assert not broker.records("t")
        first.writer.write(frame[-1:])
        await first.receive(produce.ProduceResponse, 9, 1)
        await second.receive(produce.ProduceResponse, 9)
        assert [(one.value or b"")[:1] for one in broker.records("t")] == [b"1", b"2"]
        assert broker.state.request_memory.size == 0
        for client in (first, second, other):
            await client.close()


async def test_a_closed_connection_returns_its_memory() -> None:
    async with Broker(topics={"t": 1}, queued_max_request_bytes=1) as broker:
        first, second, third = [await RawClient.connect(broker) for _ in range(3)]
        first.writer.write((1_000_000).to_bytes(4, "big") + bytes(20_000))
        await _until(lambda: broker.state.request_memory.size == 1_000_000)
        second.writer.write((1_000_000).to_bytes(4, "big") + bytes(20_000))
        third.send(produce_request("t", batch([b"3" * LARGE])), 9)
        await second.close()
        await first.close()
        await third.receive(produce.ProduceResponse, 9)
        await _until(lambda: broker.state.request_memory.size == 0)
        await third.close()


async def test_one_connection_sends_large_requests_one_after_another() -> None:
    async with Broker(topics={"t": 1}, queued_max_request_bytes=1) as broker:
        client = await RawClient.connect(broker)
        for _ in range(5):
            client.send(produce_request("t", batch([b"x" * LARGE])), 9)
        for number in range(1, 6):
            await client.receive(produce.ProduceResponse, 9, number)
        assert broker.state.request_memory.size == 0
        await client.close()


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.lowlevel.checkpoint()


# --- connections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"max_connections_per_ip": 2}, 2),
        ({"max_connections_per_ip": 0, "max_connections_per_ip_overrides": "10.0.0.1:1,127.0.0.1:3"}, 3),
        ({"max_connections_per_ip": 9, "max_connections": 1}, 1),
    ],
)
async def test_connections_of_an_address_are_limited(
    options: dict[str, int], most: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with Broker(topics={"t": 1}, **options) as broker:  # type: ignore[arg-type]  # of each test
        clients = [await RawClient.connect(broker) for _ in range(most)]
        for client in clients:
            await client.ask(api_versions.ApiVersionsRequest(), 0)
        refused = await RawClient.connect(broker)
        assert await refused.closed_by_broker()
        assert "is reached" in caplog.text
        await clients.pop().close()
        while True:  # the broker sees the end of the connection a little later
            another = await RawClient.connect(broker)
            try:
                assert (await produce_one(another, "t", batch([b"a"]))).error_code == 0
                break
            except (ConnectionError, EOFError):
                await another.close()
        for client in (*clients, refused, another):
            await client.close()


async def test_large_requests_that_wait_for_memory_take_none() -> None:
    """Each took its whole size of address space, 2,000 of them 200 GB."""
    async with Broker(topics={"t": 1}, queued_max_request_bytes=1) as broker:
        clients = [await RawClient.connect(broker) for _ in range(40)]
        tracemalloc.start()
        try:
            for client in clients:
                client.writer.write((90 << 20).to_bytes(4, "big") + bytes(24))
            for client in clients[1:]:
                await client.writer.drain()
            await _until(lambda: broker.state.request_memory.waiting == len(clients) - 1)
            assert tracemalloc.get_traced_memory()[1] < 2 * (90 << 20)
        finally:
            tracemalloc.stop()
        for client in clients:
            await client.close()
