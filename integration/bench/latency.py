"""`python -m integration.bench.latency`: latency to a group member at 2,000 records per second.

Producer and member share one loop and one clock; no batch lingers. Then consumers are started and
closed, each in a new group of a warm cluster, to measure the time to the first record of a filled
topic, and of `close`. aiokafka does the same for comparison; a client may be listed twice (JVMs are
slow at first). "none" is the floor: a blocking socket that sends ApiVersions to the idle broker at
the same rate, without a client; a record takes two such round trips.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import struct
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import uvloop
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # type: ignore[import-untyped]  # no types
from rich.console import Console
from rich.table import Table

from aiokwire import Admin, Consumer, Producer
from aiokwire.admin import NewTopic
from integration.embedded import at_full_speed

PARTITIONS: Final = 4
RATE: Final = 2_000
_STAMP: Final = struct.Struct("=d")
_PADDING: Final = bytes(92)
_WARM_SECONDS: Final = 1.0  # not measured
_TURN_SECONDS: Final = 0.002  # between two turns of the sender: several records each

Send = Callable[[str, bytes], Awaitable[Any]]
Values = Callable[[float], Awaitable[list[bytes]]]


@dataclass(slots=True)
class Figures:
    """Measurements in milliseconds."""

    latencies: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)  # from before `start` to the first record
    closes: list[float] = field(default_factory=list)


class Aiokwire:
    """The client under test."""

    name = "aiokwire"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Send]:
        async with Producer(self._bootstrap, linger_ms=0) as producer:
            yield producer.submit

    def consumer(self, topic: str) -> Any:
        return Consumer(
            topic, bootstrap_servers=self._bootstrap, group_id=uuid.uuid4().hex, auto_offset_reset="earliest"
        )

    @staticmethod
    async def read(consumer: Any, timeout: float) -> list[bytes]:
        return [record.value for record in await consumer.getmany(timeout=timeout)]

    @staticmethod
    def has_partitions(consumer: Any) -> bool:
        return bool(consumer.assignment)

    @staticmethod
    async def close(consumer: Any) -> None:
        await consumer.close()


class Aiokafka:
    """The peer."""

    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    @asynccontextmanager
    async def producer(self) -> AsyncIterator[Send]:
        async with AIOKafkaProducer(bootstrap_servers=self._bootstrap, acks="all", linger_ms=0) as producer:
            yield producer.send

    def consumer(self, topic: str) -> Any:
        return AIOKafkaConsumer(
            topic, bootstrap_servers=self._bootstrap, group_id=uuid.uuid4().hex, auto_offset_reset="earliest"
        )

    @staticmethod
    async def read(consumer: Any, timeout: float) -> list[bytes]:
        found = await consumer.getmany(timeout_ms=int(1e3 * timeout))
        return [record.value for records in found.values() for record in records]

    @staticmethod
    def has_partitions(consumer: Any) -> bool:
        return bool(consumer.assignment())

    @staticmethod
    async def close(consumer: Any) -> None:
        await consumer.stop()


CLIENTS: Final[dict[str, Callable[[str], Aiokwire | Aiokafka]]] = {"aiokwire": Aiokwire, "aiokafka": Aiokafka}


async def _flow(client: Aiokwire | Aiokafka, topic: str, seconds: float, figures: Figures) -> None:
    """Send and read concurrently."""
    opened: AbstractAsyncContextManager[Send] = client.producer()
    count = int(RATE * (seconds + _WARM_SECONDS))
    async with opened as send, anyio.create_task_group() as tasks:

        async def feed() -> None:
            began = time.perf_counter()
            sent = 0
            while sent < count:
                due = min(count, int((time.perf_counter() - began) * RATE))
                for _ in range(sent, due):
                    await send(topic, _STAMP.pack(time.perf_counter()) + _PADDING)
                sent = due
                await anyio.sleep(_TURN_SECONDS)

        consumer = client.consumer(topic)
        await consumer.start()
        while not client.has_partitions(consumer):  # noqa: ASYNC110 - the clients have no common event
            await anyio.sleep(_TURN_SECONDS)
        tasks.start_soon(feed)
        seen = 0
        while seen < count:
            values = await client.read(consumer, 10.0)
            now = time.perf_counter()
            if not values:
                raise RuntimeError(f"{client.name}: no record for 10 s after {seen} of {count} records")
            for value in values:
                seen += 1
                if seen > RATE * _WARM_SECONDS:
                    figures.latencies.append(1e3 * (now - _STAMP.unpack_from(value)[0]))
        await client.close(consumer)


async def _starts(client: Aiokwire | Aiokafka, topic: str, count: int, figures: Figures) -> None:
    for _ in range(count):
        consumer = client.consumer(topic)
        began = time.perf_counter()
        await consumer.start()
        while not await client.read(consumer, 1.0):
            pass
        here = time.perf_counter()
        figures.firsts.append(1e3 * (here - began))
        await client.close(consumer)
        figures.closes.append(1e3 * (time.perf_counter() - here))


async def measure(client: Aiokwire | Aiokafka, bootstrap: str, *, seconds: float, starts: int) -> Figures:
    """Return all figures of one client."""
    topic, figures = f"latency-{uuid.uuid4().hex[:8]}", Figures()
    async with Admin(bootstrap) as admin:
        (await admin.create_topics([NewTopic(topic, PARTITIONS)])).check()
    await _flow(client, topic, seconds, figures)
    await _starts(client, topic, starts + 1, figures)
    figures.firsts.pop(0)  # the first one loads modules, and is the broker's first group
    figures.closes.pop(0)
    return figures


def floor(bootstrap: str, seconds: float) -> Figures:
    """Measure round trips of ApiVersions, which needs no disk, lock or other broker thread."""
    host, port = bootstrap.rsplit(":", 1)
    request = struct.pack(">ihhih", 10, 18, 0, 1, 0)  # its size, the API, version 0, correlation id, no client id
    figures = Figures()
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(int(seconds / _TURN_SECONDS)):
            began = time.perf_counter()
            connection.sendall(request)
            (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
            connection.recv(size, socket.MSG_WAITALL)
            figures.latencies.append(1e3 * (time.perf_counter() - began))
            time.sleep(_TURN_SECONDS)
    return figures


def _row(name: str, figures: Figures) -> list[str]:
    def shares(values: list[float], *wanted: float) -> list[str]:
        ordered = sorted(values)
        return [f"{ordered[round((len(ordered) - 1) * share)]:.2f}" for share in wanted]

    cells = [name, f"{len(figures.latencies):,}", *shares(figures.latencies, 0.5, 0.99, 1.0)]
    if not figures.firsts:
        return cells
    return [
        *cells,
        f"{statistics.median(figures.firsts):.1f}",
        *shares(figures.firsts, 1.0),
        f"{statistics.median(figures.closes):.1f}",
        *shares(figures.closes, 1.0),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.latency", description=__doc__)
    parser.add_argument("--broker", default="4.3.1", help='"embedded" or a release (default: 4.3.1)')
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument(
        "--clients", default="aiokafka,aiokwire,aiokafka,aiokwire,none", help="clients in this order, comma-separated"
    )
    given = parser.parse_args()
    table = Table(title=f"{given.broker}: {RATE:,} records/s through a group, {PARTITIONS} partitions; ms")
    for column in ("client", "records", "p50", "p99", "max", "first record", "max", "close", "max"):
        table.add_column(column, justify="right")
    try:
        with at_full_speed(given.broker) as server:
            for name in given.clients.split(","):
                if name == "none":
                    table.add_row(*_row(name, floor(server.bootstrap_servers, given.seconds)))
                    continue
                client = CLIENTS[name](server.bootstrap_servers)
                work = measure(client, server.bootstrap_servers, seconds=given.seconds, starts=given.starts)
                table.add_row(*_row(name, uvloop.run(work)))
    finally:
        Console(width=None if sys.stdout.isatty() else 130).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
