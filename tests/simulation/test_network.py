"""The simulated network: bytes arrive in order, wait for slow readers, and connections break."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import anyio
import pytest

from tests.simulation.loop import SimLoop, run
from tests.simulation.network import Network, SimTransport, Weather

IP = "10.0.0.1"


class Peer(asyncio.Protocol):
    """A protocol that records its data and events."""

    def __init__(self) -> None:
        self.data = b""
        self.events: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, SimTransport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def eof_received(self) -> None:
        self.events.append("end")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append(f"lost {type(exc).__name__}")


async def connected(network: Network) -> tuple[Peer, Peer]:
    servers: list[Peer] = []

    def serve() -> Peer:
        servers.append(Peer())
        return servers[-1]

    await network.loop.create_server(serve, IP, 9092)
    _, client = await network.loop.create_connection(Peer, IP, 9092)
    return client, servers[-1]


def simulate(seed: int, main: Any) -> Any:
    loop = SimLoop(seed)
    network = Network(loop)
    body: Coroutine[Any, Any, Any] = main(network)
    return run(loop, body)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_complete_and_in_order(seed: int) -> None:
    async def main(network: Network) -> None:
        client, server = await connected(network)
        sent = bytes(index * 7 % 251 for index in range(100_000))
        for at in range(0, len(sent), 9_999):
            client.transport.write(sent[at : at + 9_999])
            await anyio.sleep(network.loop.rng.uniform(0, 0.01))
        await anyio.sleep(5)
        assert server.data == sent

    simulate(seed, main)


def test_a_paused_reader_pauses_the_writer() -> None:
    async def main(network: Network) -> None:
        client, server = await connected(network)
        server.transport.pause_reading()
        client.transport.write(bytes(1 << 20))
        await anyio.sleep(10)
        assert client.events == ["pause"]
        assert client.transport.get_write_buffer_size() == (1 << 20) - network.weather.window
        server.transport.resume_reading()
        await anyio.sleep(10)
        assert client.events == ["pause", "resume"]
        assert len(server.data) == 1 << 20

    simulate(1, main)


def test_close_sends_buffered_bytes_and_abort_does_not() -> None:
    async def main(network: Network) -> None:
        for closing, expected in (("close", ["end", "lost NoneType"]), ("abort", ["lost ConnectionResetError"])):
            client, server = await connected(network)
            server.transport.pause_reading()
            client.transport.write(bytes(200_000))
            getattr(client.transport, closing)()
            await anyio.sleep(1)
            server.transport.resume_reading()
            await anyio.sleep(1)
            assert server.events == expected
            assert (len(server.data) == 200_000) is (closing == "close")
            assert client.events[-1] == "lost NoneType"
            network.kill(IP, silent=False)
        await anyio.sleep(1)
        assert not network.transports

    simulate(1, main)


def test_a_cut_connection_breaks_for_both_ends_after_some_bytes() -> None:
    async def main(network: Network) -> None:
        network.weather = Weather(cut=1.0, cut_after=5_000)
        client, server = await connected(network)
        client.transport.write(bytes(10_000))
        server.transport.write(bytes(10_000))
        await anyio.sleep(1)
        assert min(len(client.data), len(server.data)) <= 5_000
        assert client.events[-1] == server.events[-1] == "lost ConnectionResetError"

    simulate(1, main)


def test_a_network_partition_holds_all_bytes_until_it_ends() -> None:
    async def main(network: Network) -> None:
        client, server = await connected(network)
        network.separate(client.transport.host, IP)
        client.transport.write(b"abc")
        with anyio.move_on_after(60) as scope:
            await network.loop.create_connection(Peer, IP, 9092)
        assert scope.cancelled_caught
        assert server.data == b""
        network.join()
        await anyio.sleep(1)
        assert server.data == b"abc"

    simulate(1, main)


def test_a_host_without_power_is_silent_until_it_is_back() -> None:
    async def main(network: Network) -> None:
        client, _ = await connected(network)
        network.kill(IP, silent=True)
        client.transport.write(b"abc")
        await anyio.sleep(60)
        assert client.events == []
        network.power_on(IP)
        await anyio.sleep(1)
        assert client.events == ["lost ConnectionResetError"]
        with pytest.raises(ConnectionRefusedError):
            await network.loop.create_connection(Peer, IP, 9092)

    simulate(1, main)


def test_an_unknown_name_does_not_resolve() -> None:
    async def main(network: Network) -> None:
        with pytest.raises(OSError, match="Name or service not known"):
            await network.loop.getaddrinfo("nowhere", 1)

    simulate(1, main)
