"""Records of committed transactions reach Kafka, in order, whatever fails meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import anyio
import anyio.lowlevel
import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from aiokwire import ClosedError, ConfigurationError, InvalidArgument
from aiokwire.broker import Broker
from aiokwire.outbox import OUTBOX_ID, Outbox, OutboxRelay, outbox_id
from aiokwire.protocol import ApiKey
from aiokwire.web import Services
from tests.metric_values import value_of

QUICK: Final[dict[str, Any]] = {
    "poll_interval_ms": 5,
    "linger_ms": 0,
    "retry_backoff_ms": 2,
    "retry_backoff_max_ms": 10,
    "reconnect_backoff_ms": 2,
    "reconnect_backoff_max_ms": 10,
    "metadata_min_interval_ms": 1,
    "unknown_topic_timeout_ms": 100,
}


def new_relay(outbox: Outbox, engine: AsyncEngine, broker: Broker, **options: Any) -> OutboxRelay:
    return OutboxRelay(outbox, engine, broker.bootstrap_servers, **{**QUICK, **options})


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not is_so():
            await anyio.lowlevel.checkpoint()


async def rows_of(engine: AsyncEngine, outbox: Outbox) -> list[Any]:
    async with engine.connect() as connection:
        return list(await connection.execute(sa.select(outbox.table).order_by(outbox.table.c.id)))


async def until_sent(engine: AsyncEngine, outbox: Outbox) -> None:
    """Wait until no row waits."""
    with anyio.fail_after(20):
        while any(row.sent_ms is None and row.error is None for row in await rows_of(engine, outbox)):
            await anyio.lowlevel.checkpoint()


def values(broker: Broker, topic: str = "orders") -> list[str]:
    return [(record.value or b"").decode() for record in broker.records(topic)]


async def fill(engine: AsyncEngine, outbox: Outbox, *given: str, topic: str = "orders") -> None:
    """Add records, each in a transaction; "a:1" has the key a and the value 1."""
    for each in given:
        key, _, value = each.partition(":")
        async with AsyncSession(engine) as session, session.begin():
            await outbox.add(session, topic, value.encode(), key.encode())


async def test_a_record_is_sent_only_if_its_transaction_is_committed(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox
) -> None:
    async with AsyncSession(engine) as session:
        await outbox.add(session, "orders", b"refused", b"a")
        await session.rollback()
        uid = await outbox.add(
            session, "orders", b"book", b"a", partition=1, timestamp=1234, headers=[("kind", b"\xff"), ("none", None)]
        )
        await session.commit()
    async with new_relay(outbox, engine, kafka_broker):
        await until(lambda: len(kafka_broker.records("orders")) == 1)
        (record,) = kafka_broker.records("orders")
        await until_sent(engine, outbox)
    assert (record.key, record.value, record.partition, record.timestamp) == (b"a", b"book", 1, 1234)
    assert list(record.headers) == [("kind", b"\xff"), ("none", None), (OUTBOX_ID, uid.encode())]
    assert outbox_id(record) == uid
    assert await rows_of(engine, outbox) == [], "sent rows are deleted"


async def test_records_with_the_same_key_keep_their_order_over_many_batches(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox
) -> None:
    async with engine.begin() as connection:
        for number in range(100):
            await outbox.add(connection, "orders", b"%d" % number, b"%d" % (number % 5))
    async with new_relay(outbox, engine, kafka_broker, batch_rows=7) as relay:
        await until_sent(engine, outbox)
        assert value_of(relay.metrics(), "kafka.outbox.sent") == 100
    for key in range(5):
        sent = [int(record.value or b"") for record in kafka_broker.records("orders") if record.key == b"%d" % key]
        assert sent == list(range(key, 100, 5))


async def test_a_batch_is_bounded_by_bytes_but_holds_at_least_one_row(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox
) -> None:
    async with engine.begin() as connection:
        for size in (10, 5000, 10, 10):
            await outbox.add(connection, "orders", bytes(size))
    async with new_relay(outbox, engine, kafka_broker, batch_bytes=30):
        await until_sent(engine, outbox)
    assert len(kafka_broker.records("orders")) == 4


async def test_one_of_two_relays_sends_and_the_other_takes_over(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox
) -> None:
    first, second = new_relay(outbox, engine, kafka_broker), new_relay(outbox, engine, kafka_broker)
    async with first:
        await until(lambda: first.health().is_leader)
        async with second:
            await fill(engine, outbox, "a:1", "a:2")
            await until_sent(engine, outbox)
            assert second.health().ok
            assert not second.health().is_leader
            await first.close()
            await until(lambda: second.health().is_leader)
            await fill(engine, outbox, "a:3")
            await until_sent(engine, outbox)
    assert values(kafka_broker) == ["1", "2", "3"]
    with pytest.raises(ClosedError, match="create a new one"):
        await first.start()


async def test_rows_wait_while_kafka_is_down_and_are_reported_when_they_wait_for_long(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox
) -> None:
    relay = new_relay(outbox, engine, kafka_broker, stalled_after_ms=300)
    services = Services(relay=relay)
    async with services.lifespan():
        await fill(engine, outbox, "a:0")
        await until_sent(engine, outbox)
        await until(lambda: services.report().is_ready)
        await until(lambda: services["relay"].health().backlog == 0)
        await kafka_broker.faults.stop_node(1, fail_over=False)
        await fill(engine, outbox, "a:1", "a:2", "a:3")
        await until(lambda: not services.report().is_ready)
        report = services.report()
        assert report.is_alive
        assert "wait to be sent, the oldest for" in report.services["relay"].reasons[0]
        await kafka_broker.faults.start_node(1)
        await until_sent(engine, outbox)
        await until(lambda: services.report().is_ready)
    assert values(kafka_broker) == ["0", "1", "2", "3"]


async def test_a_relay_that_is_closed_while_kafka_is_down_leaves_its_rows_to_the_next(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox
) -> None:
    relay = new_relay(outbox, engine, kafka_broker)
    async with relay:
        hold = kafka_broker.faults.on(ApiKey.PRODUCE).hold()
        await fill(engine, outbox, "a:1", "a:2")
        await hold.arrived()
        await relay.close(timeout=0.01)
    hold.release()
    assert not relay.health().ok
    async with new_relay(outbox, engine, kafka_broker):
        await until_sent(engine, outbox)
    found = [outbox_id(record) for record in kafka_broker.records("orders")]
    assert values(kafka_broker)[:2] == ["1", "2"]
    assert len(set(found)) == 2, "a repeated record has the same id"


async def test_a_record_that_is_never_accepted_is_kept_with_its_error_while_others_are_sent(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine.begin() as connection:
        await outbox.add(connection, "orders", b"1", b"a")
        await outbox.add(connection, "orders", bytes(5000), b"a")
        await outbox.add(connection, "orders", b"3", b"a", partition=99)
        await outbox.add(connection, "orders", b"4", b"a")
    async with new_relay(outbox, engine, kafka_broker, max_request_size=3000, batch_size=1000) as relay:
        await until(lambda: "4" in values(kafka_broker))
        await until_sent(engine, outbox)
        await until(lambda: relay.health().rejected == 2)
        assert relay.health().ok
    kept = await rows_of(engine, outbox)
    assert [row.id for row in kept] == [2, 3]
    assert all(row.error for row in kept)
    assert "row 2 for topic 'orders' was rejected" in caplog.text


async def test_a_missing_topic_holds_back_only_its_own_records(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiokwire.outbox.sending.BLOCKED", 0.01)
    await fill(engine, outbox, "a:1", topic="later")
    await fill(engine, outbox, "a:1", "a:2")
    async with new_relay(outbox, engine, kafka_broker, stalled_after_ms=100) as relay:
        await until(lambda: values(kafka_broker) == ["1", "2"])
        await until(lambda: any("cannot send to topic 'later'" in each for each in relay.health().reasons))
        await kafka_broker.create_topic("later", 1)
        await until_sent(engine, outbox)
    assert values(kafka_broker, "later") == ["1"]


async def test_sent_rows_are_kept_for_the_retention(kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox) -> None:
    await fill(engine, outbox, "a:1", "a:2")
    async with new_relay(outbox, engine, kafka_broker, retention_ms=3_600_000):
        await until_sent(engine, outbox)
    assert [row.sent_ms is not None for row in await rows_of(engine, outbox)] == [True, True]
    async with engine.begin() as connection:
        await connection.execute(outbox.table.update().values(sent_ms=1))
    async with new_relay(outbox, engine, kafka_broker, retention_ms=3_600_000):
        with anyio.fail_after(20):
            while await rows_of(engine, outbox):
                await anyio.lowlevel.checkpoint()


async def test_a_relay_waits_for_its_database_and_names_the_error(
    kafka_broker: Broker, engine: AsyncEngine, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    async with engine.begin() as connection:
        await connection.run_sync(outbox.table.drop)
    async with new_relay(outbox, engine, kafka_broker) as relay:
        await until(lambda: bool(relay.health().database_error))
        assert "no such table" in relay.health().reasons[0]
        await outbox.create_table(engine)
        await fill(engine, outbox, "a:1")
        await until_sent(engine, outbox)
        assert relay.health().ok
    assert caplog.text.count("no such table") == 1, "one line for an outage"


async def test_wrong_arguments_are_refused(engine: AsyncEngine, outbox: Outbox) -> None:
    with pytest.raises(ConfigurationError, match="batch_rows"):
        OutboxRelay(outbox, engine, "localhost:9092", batch_rows=0)
    with pytest.raises(ConfigurationError, match="linger_msec"):
        OutboxRelay(outbox, engine, "localhost:9092", linger_msec=1)  # type: ignore[call-arg]
    async with engine.begin() as connection:
        with pytest.raises(InvalidArgument, match="value must be bytes"):
            await outbox.add(connection, "orders", "book")  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="topic must be a name"):
            await outbox.add(connection, "", b"book")
