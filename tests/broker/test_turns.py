"""Fair turns: what one client pipelines does not keep the others waiting."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Self

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.faults.journal import Journal
from aiokwire.broker.turns import REQUEST_COST, SHARE, Turns
from aiokwire.protocol import encode_request
from aiokwire.protocol.messages import api_versions, metadata, produce
from tests.broker.raw import PATIENCE, RawClient, batch, fetch_request, produce_request, values_of

FLOOD = 380  # requests that one read of the broker takes up
FLOODING = 40  # clients
SHARE_REQUESTS = SHARE // REQUEST_COST  # small requests that one share pays for


@contextlib.asynccontextmanager
async def _connected(broker: Broker, count: int) -> AsyncIterator[list[RawClient]]:
    clients = [await RawClient.connect(broker) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            await client.close()


def _frames(count: int, first: int = 1) -> bytes:
    request = metadata.MetadataRequest(topics=None)
    return b"".join(b"".join(encode_request(request, 1, number, None)) for number in range(first, first + count))


async def test_a_client_gets_responses_while_others_have_hundreds_of_requests_waiting() -> None:
    async with (
        Broker(topics={f"t{number}": 8 for number in range(8)}, journal=10_000) as broker,
        _connected(broker, 6) as (victim, *flooding),
    ):
        await victim.ask(api_versions.ApiVersionsRequest(), 0)
        broker.journal.clear()
        for client in flooding:
            client.writer.write(_frames(FLOOD))
        await victim.ask(api_versions.ApiVersionsRequest(), 0)
        handled = len(broker.journal)
        assert handled < 5 * FLOOD // 2, "the victim waits for a few shares, not for all of the flood"
        for client in flooding:
            for number in range(1, FLOOD + 1):
                await client.receive(metadata.MetadataResponse, 1, number)


async def test_a_client_gets_responses_between_the_requests_of_one_that_never_stops_sending(broker: Broker) -> None:
    async with _connected(broker, 2) as (victim, flooding):

        async def flood() -> None:
            number = 1
            while True:
                flooding.writer.write(_frames(FLOOD, number))
                await flooding.writer.drain()
                for one in range(number, number + FLOOD):
                    await flooding.receive(metadata.MetadataResponse, 1, one)
                number += FLOOD

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood)
            with anyio.fail_after(PATIENCE):
                for _ in range(20):
                    await victim.ask(api_versions.ApiVersionsRequest(), 0)
            tasks.cancel_scope.cancel()


def _produced(count: int) -> bytes:
    """Produce requests with one short record each."""
    request = produce_request("t", batch([b"x" * 50]))
    return b"".join(b"".join(encode_request(request, 9, number, None)) for number in range(1, count + 1))


class _TurnCounter:
    """The most requests that the broker took up in one turn of the loop."""

    def __init__(self, journal: Journal) -> None:
        self.most = self._before = 0
        self._journal = journal
        self._handle: asyncio.Handle | None = None

    def _turn(self) -> None:
        self.most = max(self.most, len(self._journal) - self._before)
        self._before = len(self._journal)
        self._handle = asyncio.get_running_loop().call_soon(self._turn)

    def __enter__(self) -> Self:
        self._before = len(self._journal)
        self._turn()
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            self._handle.cancel()


async def test_a_client_gets_responses_while_forty_others_pipeline_less_than_a_share_each() -> None:
    pipelined = SHARE_REQUESTS // 2
    async with (
        Broker(topics={"t": 1}, journal=10_000) as broker,
        _connected(broker, FLOODING + 1) as (victim, *flooding),
    ):
        await victim.ask(api_versions.ApiVersionsRequest(), 0)
        broker.journal.clear()
        for client in flooding:
            client.writer.write(_produced(pipelined))
        await victim.ask(api_versions.ApiVersionsRequest(), 0)
        handled = len(broker.journal)
        assert handled < 4 * SHARE_REQUESTS, "of all connections together, not of each"
        for client in flooding:
            for number in range(1, pipelined + 1):
                await client.receive(produce.ProduceResponse, 9, number)


async def test_all_connections_together_get_two_shares_of_a_turn_of_the_loop_at_most() -> None:
    pipelined = 10 * SHARE_REQUESTS
    async with (
        Broker(topics={"t": 1}, journal=FLOODING * pipelined) as broker,
        _connected(broker, FLOODING // 4) as flooding,
    ):
        with _TurnCounter(broker.journal) as turns:
            for client in flooding:
                client.writer.write(_produced(pipelined))
            for client in flooding:
                for number in range(1, pipelined + 1):
                    await client.receive(produce.ProduceResponse, 9, number)
        assert turns.most <= 2 * SHARE_REQUESTS + len(flooding)


async def test_no_responses_are_written_to_a_client_that_aborted_with_hundreds_of_requests_pipelined(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Broker(topics={"t": 1}, journal=10_000) as broker, _connected(broker, 2) as (client, reader):
        await reader.ask(api_versions.ApiVersionsRequest(), 0)
        broker.journal.clear()
        request = produce_request("t", batch([b"x"]), acks=0)
        last = b"".join(encode_request(request, 9, FLOOD + 1, None))
        with caplog.at_level(logging.WARNING, logger="asyncio"):
            client.writer.write(_frames(FLOOD) + last)
            while not len(broker.journal):
                await anyio.lowlevel.checkpoint()
            client.writer.transport.abort()
            answer = await reader.ask(fetch_request("t", 0, max_wait_ms=5000), 12)
        assert values_of(answer.responses[0].partitions[0]) == [b"x"], "acks=0 asks for no answer, and is done"
        assert not caplog.records


async def test_requests_of_a_client_that_left_are_done_in_its_turns(broker: Broker) -> None:
    async with _connected(broker, 2) as (client, reader):
        for number in range(FLOOD):
            client.send(produce_request("t", batch([b"%d" % number]), acks=0), 9)
        await client.writer.drain()
        await client.close()
        found: list[bytes | None] = []
        while len(found) < FLOOD:
            answer = await reader.ask(fetch_request("t", len(found), max_wait_ms=5000), 12)
            found += values_of(answer.responses[0].partitions[0])
        assert found == [b"%d" % number for number in range(FLOOD)]


class _Member:
    """Has a number of requests of one cost."""

    def __init__(self, name: str, requests: int, cost: int, turns: list[str]) -> None:
        self.name, self.left, self.cost, self.turns = name, requests, cost, turns

    def take_turn(self, share: int) -> tuple[int, bool]:
        spent = 0
        while self.left and spent < share:
            self.left -= 1
            spent += self.cost
            self.turns.append(self.name)
        return spent, self.left > 0


async def test_members_of_the_line_take_turns_of_one_request() -> None:
    taken: list[str] = []
    line = Turns()
    for name, requests in (("a", 4), ("b", 2), ("c", 1)):
        line.join(_Member(name, requests, 1, taken))
    assert line.line
    await anyio.lowlevel.checkpoint()
    assert taken == ["a", "b", "c", "a", "b", "a", "a"]
    assert not line.line


async def test_the_line_gets_one_share_of_each_turn_of_the_loop() -> None:
    taken: list[str] = []
    line = Turns()
    line.join(_Member("a", 10, SHARE // 2, taken))
    for turn in range(1, 6):
        await anyio.lowlevel.checkpoint()
        assert len(taken) == 2 * turn
    assert not line.line
