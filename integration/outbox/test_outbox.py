"""The outbox on PostgreSQL: NOTIFY, two relays, and what is stored after kills."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from aiokwire import Consumer
from aiokwire.outbox import Inbox, Outbox, OutboxRelay, outbox_id
from integration.conftest import lacking
from integration.embedded import EmbeddedProcess
from integration.kafka import KafkaServer, MissingPrerequisite
from integration.outbox.kills import Plan, Run
from integration.postgres import PostgresServer

pytestmark = pytest.mark.timeout(240)  # a busy machine starts processes slowly


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


async def until_leading(relay: OutboxRelay) -> None:
    while not relay.health().is_leader:  # noqa: ASYNC110 - of another task
        await anyio.sleep(0.01)


async def test_a_commit_wakes_the_relay_and_a_second_relay_takes_over(
    server: KafkaServer, database: PostgresServer
) -> None:
    engine = create_async_engine(database.url)
    outbox = Outbox()
    await outbox.create_table(engine)
    inbox = Inbox()
    await inbox.create_table(engine)
    slow = {"poll_interval_ms": 60_000, "linger_ms": 0}
    first = OutboxRelay(outbox, engine, server.bootstrap_servers, **slow)  # type: ignore[arg-type]
    second = OutboxRelay(outbox, engine, server.bootstrap_servers, poll_interval_ms=50)
    reading = {"bootstrap_servers": server.bootstrap_servers, "auto_offset_reset": "earliest"}
    with anyio.fail_after(50):
        async with Consumer("orders", **reading) as reader, first:  # type: ignore[arg-type]
            await until_leading(first)
            async with engine.begin() as connection:
                uid = await outbox.add(connection, "orders", b"book", b"a")
            record = await anext(aiter(reader))
            assert (record.value, outbox_id(record)) == (b"book", uid)
            async with second:
                await first.close()
                await until_leading(second)
                async with engine.begin() as connection:
                    await outbox.add(connection, "orders", b"lamp", b"a")
                assert (await anext(aiter(reader))).value == b"lamp"
        async with engine.begin() as connection:
            assert await inbox.is_first(connection, record)
            assert not await inbox.is_first(connection, record)
    await engine.dispose()


async def test_relays_database_and_broker_are_killed_and_every_key_has_its_values_in_order(
    server: KafkaServer, database: PostgresServer
) -> None:
    plan = Plan(transactions=1_500, keys=10, kills=1, database_kills=1, broker_kills=1)
    outcome = await Run(server, database, plan).run()
    assert outcome.wrong == []
    assert outcome.committed > 500
