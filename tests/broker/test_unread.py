"""Slow readers: their unread responses are bounded, individually and in total."""

from __future__ import annotations

import anyio

from aiokwire.broker import Broker
from aiokwire.broker.peers import LEAST, UnreadAnswers
from aiokwire.protocol.messages import fetch
from tests.broker.raw import PATIENCE, RawClient, batch, fetch_request, produce_one

MIB = 1 << 20


class _Reader:
    def __init__(self, unread: int) -> None:
        self.unread = unread
        self.aborted = False

    def abort_unread(self, held: int, limit: int) -> None:
        assert held > limit
        self.aborted = True
        self.unread = 0


def test_the_room_for_one_response_shrinks_with_unread_responses() -> None:
    unread = UnreadAnswers(256 * MIB)
    assert unread.room() == 64 * MIB
    rooms = []
    for _ in range(12):
        rooms.append(unread.room())
        unread.add(_Reader(rooms[-1]))
    assert rooms == sorted(rooms, reverse=True)
    assert unread.size <= 256 * MIB
    assert min(rooms) >= LEAST


def test_the_reader_that_fell_behind_first_is_dropped_when_all_together_hold_too_much() -> None:
    unread = UnreadAnswers(4 * MIB)
    readers = [_Reader(MIB) for _ in range(6)]
    for reader in readers:
        unread.add(reader)
    assert [reader.aborted for reader in readers] == [True, True, False, False, False, False]
    unread.discard(readers[3])
    assert unread.size == 3 * MIB


def test_a_single_reader_is_never_dropped_for_its_response() -> None:
    unread = UnreadAnswers(MIB)
    reader = _Reader(50 * MIB)
    unread.add(reader)
    assert not reader.aborted


async def test_clients_that_do_not_read_their_fetches_hold_a_bounded_amount_of_memory(broker: Broker) -> None:
    broker.state.unread.limit = 64 * MIB
    client = await RawClient.connect(broker)
    for _ in range(16):
        await produce_one(client, "t", batch([b"x" * 1_000_000]))
    slow: list[RawClient] = []
    most = 0
    try:
        for _ in range(20):
            one = await RawClient.connect(broker)
            slow.append(one)
            one.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a ReadTransport
            one.send(fetch_request("t"), 12)
            await one.writer.drain()
            answer = await client.ask(fetch_request("t", partition_max_bytes=100), 12)
            assert answer.responses[0].partitions[0].records, "others are served meanwhile"
            most = max(most, broker.state.unread.size)
    finally:
        for one in slow:
            one.writer.transport.abort()
    assert 8 * MIB < most <= broker.state.unread.limit + LEAST
    with anyio.fail_after(PATIENCE):
        while broker.state.unread.size:
            await anyio.lowlevel.checkpoint()
    await client.close()


async def test_a_slow_reader_receives_its_whole_response(broker: Broker) -> None:
    broker.state.unread.limit = 4 * MIB
    client = await RawClient.connect(broker)
    for _ in range(8):
        await produce_one(client, "t", batch([b"x" * 1_000_000]))
    client.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a ReadTransport
    client.send(fetch_request("t"), 12)
    await client.writer.drain()
    client.writer.transport.resume_reading()  # type: ignore[attr-defined]  # a ReadTransport
    answer = await client.receive(fetch.FetchResponse, 12)
    assert len(answer.responses[0].partitions[0].records or b"") >= 1_000_000
    assert broker.state.unread.size == 0
    await client.close()
