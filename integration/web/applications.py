"""The applications of docs/examples under load: what is stored in the end."""

from __future__ import annotations

import dataclasses
import itertools
import random
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import sqlalchemy as sa
from anyio.to_thread import run_sync
from sqlalchemy.ext.asyncio import create_async_engine

from aiokwire import Admin
from aiokwire.admin import NewTopic
from integration.kafka import KafkaServer
from integration.postgres import PostgresServer
from integration.web.processes import AppProcess, WebProcess

CLIENTS = 6
PARTITIONS = 4


@dataclasses.dataclass(slots=True)
class Load:
    """The responses that clients received."""

    accepted: list[int] = dataclasses.field(default_factory=list)
    refused: int = 0  # with 503
    unknown: int = 0  # no response: it may have been accepted


class Application(ABC):
    """An application with its processes, and a load."""

    name: str
    topic: str

    def __init__(self, server: KafkaServer, folder: Path, *, services: int, rate: float) -> None:
        """`rate`: requests per second."""
        self.server = server
        self.folder = folder
        self.load = Load()
        self.is_loading = True
        self._rate = rate
        self.environment = {"BROKERS": server.bootstrap_servers, **self.settings()}
        self.web = [
            WebProcess(self.name, self.environment, folder / f"{self.name}-{number}.log") for number in range(services)
        ]
        self.workers = [
            AppProcess(self.name, self.command(), self.environment, folder / f"{self.name}-worker-{number}.log")
            for number in range(2)
        ]

    @property
    def processes(self) -> list[AppProcess]:
        """All of them."""
        return [*self.web, *self.workers]

    @abstractmethod
    def settings(self) -> dict[str, str]:
        """Return its variables."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command of its worker."""

    @abstractmethod
    async def send(self, client: httpx.AsyncClient, url: str, number: int) -> httpx.Response:
        """Send one request."""

    @abstractmethod
    async def differences(self) -> list[str]:
        """Return what is stored wrongly, nothing once all is processed."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start everything, load until the end of the block, and end everything."""
        async with Admin(self.server.bootstrap_servers) as admin:
            (await admin.create_topics([NewTopic(self.topic, PARTITIONS)])).check()
        try:
            for each in self.processes:
                each.start()
            for web in self.web:
                await web.until_ready()
            async with anyio.create_task_group() as group:
                numbers = itertools.count()
                for number in range(CLIENTS):
                    group.start_soon(self._request, numbers, random.Random(number))
                yield
                group.cancel_scope.cancel()
        finally:
            for each in self.processes:
                each.close()

    async def _request(self, numbers: itertools.count[int], rng: random.Random) -> None:
        async with httpx.AsyncClient(timeout=30) as client:
            while self.is_loading:
                number = next(numbers)
                try:
                    response = await self.send(client, self.web[number % len(self.web)].url, number)
                except (httpx.ConnectError, httpx.ConnectTimeout):
                    pass  # not accepted; the other process is asked next
                except httpx.HTTPError:
                    self.load.unknown += 1
                else:
                    self._note(response)
                await anyio.sleep(rng.expovariate(self._rate / CLIENTS))

    def _note(self, response: httpx.Response) -> None:
        if response.is_success:
            body = response.json() if response.content else None
            self.load.accepted.append(body["id"] if body else 0)
        elif response.status_code == 503:
            self.load.refused += 1
        else:
            self.load.unknown += 1

    async def restart(self, process: AppProcess) -> int:
        """Replace a process as a rolling restart does; return its exit status."""
        status = await process.stop()
        process.start()
        if isinstance(process, WebProcess):
            await process.until_ready()
        return status

    async def kill(self, process: AppProcess) -> None:
        """Kill a process, and start it again."""
        await process.kill()
        process.start()
        if isinstance(process, WebProcess):
            await process.until_ready()

    async def interrupt_broker(self) -> str:
        """Kill the broker until `/readyz` of a process reports it; return the report.

        Of several relays only the one that sends knows what waits.
        """
        await run_sync(self.server.kill)
        report = await self._until_reported()
        await run_sync(self.server.restart)
        for each in self.web:
            await each.until_ready()
        return report

    async def _until_reported(self) -> str:
        with anyio.fail_after(60):
            while True:
                for each in self.web:
                    status, body = await each.readiness()
                    if status == 503:
                        return body
                await anyio.sleep(0.1)

    async def finish(self, seconds: float = 60) -> list[str]:
        """End the load; return what is wrong when everything should be processed."""
        self.is_loading = False
        found: list[str] = ["nothing was checked"]
        with anyio.move_on_after(seconds):
            while found:
                await anyio.sleep(0.3)
                found = await self.differences()
        return found


class Orders(Application):
    """docs/examples/orders on PostgreSQL."""

    name, topic = "orders", "orders"

    def __init__(self, server: KafkaServer, folder: Path, database: PostgresServer, *, rate: float) -> None:
        self.database = database
        super().__init__(server, folder, services=2, rate=rate)

    def settings(self) -> dict[str, str]:
        return {"DATABASE": self.database.url}

    def command(self) -> list[str]:
        return ["aiokwire", "run", "billing:worker"]

    async def send(self, client: httpx.AsyncClient, url: str, number: int) -> httpx.Response:
        order = {"customer": f"c{number % 20}", "amount": number / 100}
        return await client.post(f"{url}/orders", json=order)

    async def differences(self) -> list[str]:
        """An accepted order is stored and has an invoice; all stored orders have one."""
        engine = create_async_engine(self.database.url)
        try:
            async with engine.connect() as connection:
                orders = set(await connection.scalars(sa.text("SELECT id FROM orders")))
                invoices = list(await connection.scalars(sa.text("SELECT order_id FROM invoices")))
                waiting = await connection.scalar(sa.text("SELECT count(*) FROM aiokwire_outbox"))
        finally:
            await engine.dispose()
        lost, unbilled = set(self.load.accepted) - orders, orders - set(invoices)
        found = [f"{len(lost)} accepted orders are lost"] if lost else []
        found += [f"{len(unbilled)} of {len(orders)} orders have no invoice"] if unbilled else []
        return found + ([f"{waiting} rows wait in the outbox"] if waiting else [])


class Clicks(Application):
    """docs/examples/clicks, with counts in SQLite."""

    name, topic = "clicks", "clicks"

    def settings(self) -> dict[str, str]:
        return {"DATABASE_FILE": str(self.folder / "clicks.db")}

    def command(self) -> list[str]:
        return ["aiokwire", "run", "views:worker"]

    async def send(self, client: httpx.AsyncClient, url: str, number: int) -> httpx.Response:
        return await client.post(f"{url}/clicks/page{number % 10}")

    async def differences(self) -> list[str]:
        """Every accepted click is counted once."""
        with sqlite3.connect(self.folder / "clicks.db", timeout=10) as connection:
            (counted,) = connection.execute("SELECT coalesce(sum(count), 0) FROM views").fetchone()
        accepted = len(self.load.accepted)
        if accepted <= counted <= accepted + self.load.unknown:
            return []
        return [f"{accepted} clicks accepted, {self.load.unknown} without a response, {counted} counted"]
