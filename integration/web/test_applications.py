"""The example applications through restarts and kills: nothing is lost or counts twice."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from integration.conftest import lacking
from integration.embedded import EmbeddedProcess
from integration.kafka import KafkaServer, MissingPrerequisite
from integration.postgres import PostgresServer
from integration.web.applications import Clicks, Orders

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PATIENCE = 220  # starting processes takes most of the time; a busy machine needs several times as long
pytestmark = pytest.mark.timeout(PATIENCE + 20)


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    try:
        with PostgresServer() as server:
            yield server
    except MissingPrerequisite as missing:
        lacking(str(missing))


@pytest.fixture
def server() -> Iterator[KafkaServer]:
    broker = EmbeddedProcess()
    broker.start()
    yield broker
    broker.close()


async def test_processes_that_start_together_create_the_tables_of_orders_once(
    database: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / "orders")
    tables = importlib.import_module("tables")
    engines = [create_async_engine(database.url) for _ in range(6)]
    for _ in range(5):
        async with anyio.create_task_group() as group:
            for engine in engines:
                group.start_soon(tables.create_tables, engine)
        async with engines[0].begin() as connection:
            await connection.run_sync(tables.Base.metadata.drop_all)
    for engine in engines:
        await engine.dispose()


async def test_orders_survive_restarts_and_kills_of_service_worker_and_broker(
    server: KafkaServer, database: PostgresServer, tmp_path: Path
) -> None:
    app = Orders(server, tmp_path, database, rate=60)
    with anyio.fail_after(PATIENCE):
        async with app.running():
            assert await app.restart(app.web[0]) == 0
            await app.kill(app.web[1])
            await app.kill(app.workers[1])
            report = await app.interrupt_broker()
            assert "wait to be sent, the oldest for" in report
            assert await app.finish() == []
    assert len(app.load.accepted) > 100


async def test_clicks_are_counted_once_through_restarts_of_service_worker_and_broker(
    server: KafkaServer, tmp_path: Path
) -> None:
    app = Clicks(server, tmp_path, services=2, rate=60)
    with anyio.fail_after(PATIENCE):
        async with app.running():
            assert await app.restart(app.web[0]) == 0
            await app.kill(app.workers[0])
            report = await app.interrupt_broker()
            assert "records are retried" in report
            assert await app.restart(app.web[1]) == 0
            assert await app.finish() == []
    assert len(app.load.accepted) > 100
