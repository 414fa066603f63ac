"""Timers of the coordinator: transactions past their timeout, unused ids."""

from __future__ import annotations

import random

import anyio
import pytest

from aiokwire.broker import Broker
from aiokwire.broker.log import MemoryStorage
from aiokwire.broker.maintenance import Maintenance
from aiokwire.broker.server import Listeners
from aiokwire.broker.transactions import TransactionState
from aiokwire.clock import wall_ms
from aiokwire.error_codes import ErrorCode
from tests.broker.raw import RawClient
from tests.broker.transactional import RawProducer, kill, open_transactions, read


@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
async def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(
    broker: Broker, client: RawClient, newer: bool
) -> None:
    producer = RawProducer(client, newer=newer)
    await producer.init(timeout_ms=5_000)
    await producer.send("t", b"late")
    transactions, now = broker.state.transactions, anyio.current_time()
    assert transactions.abort_timed_out(now + 4) == 0
    assert transactions.abort_timed_out(now + 6) == 1
    assert transactions.abort_timed_out(now + 6) == 0
    assert open_transactions(broker) == {}
    assert await producer.write("t", b"later") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert await producer.end(commit=True) == (ErrorCode.INVALID_TXN_STATE if newer else ErrorCode.PRODUCER_FENCED)
    assert await read(client, "t") == []
    assert await producer.init() == 0
    await producer.send("t", b"again")
    assert await producer.end(commit=True) == 0
    assert await read(client, "t") == [b"again"]


async def test_a_newer_producer_that_aborts_late_continues_with_the_epoch_of_the_response(
    broker: Broker, client: RawClient
) -> None:
    producer = RawProducer(client, newer=True)
    await producer.init(timeout_ms=5_000)
    await producer.send("t", b"late")
    epoch = producer.epoch
    assert broker.state.transactions.abort_timed_out(anyio.current_time() + 6) == 1
    assert await producer.end(commit=False) == 0
    assert producer.epoch == epoch + 1
    await producer.send("t", b"next")
    assert await producer.end(commit=True) == 0
    assert await read(client, "t") == [b"next"]


async def test_each_transaction_has_its_own_time(broker: Broker, client: RawClient) -> None:
    producer = RawProducer(client)
    await producer.init(timeout_ms=5_000)
    await producer.send("t", b"a")
    await producer.end(commit=True)
    before = anyio.current_time()
    await producer.send("t", b"b")
    assert broker.state.transactions.abort_timed_out(before + 4.9) == 0
    await producer.end(commit=True)
    assert broker.state.transactions.abort_timed_out(before + 1000) == 0


async def test_the_transaction_timeout_continues_across_a_restart() -> None:
    storage = MemoryStorage()
    async with Broker(storage=storage, topics={"t": 1}, rng=random.Random(3)) as broker:
        client = await RawClient.connect(broker)
        producer = RawProducer(client)
        await producer.init(timeout_ms=5_000)
        await producer.send("t", b"a")
        await client.close()
        await kill(broker)
    async with Broker(storage=storage) as broker:
        now = anyio.current_time()
        assert broker.state.transactions.abort_timed_out(now) == 0
        assert broker.state.transactions.abort_timed_out(now + 5.1) == 1
        assert open_transactions(broker) == {}


async def test_periodic_tasks_of_the_broker_abort_overdue_transactions() -> None:
    async with Broker(topics={"t": 1}) as broker:
        client = await RawClient.connect(broker)
        producer = RawProducer(client)
        await producer.init(timeout_ms=1)
        await producer.send("t", b"a")
        with anyio.fail_after(5):
            while open_transactions(broker):
                await Maintenance(broker.state, Listeners(broker.state)).do_all()
        assert await producer.end(commit=True) == ErrorCode.PRODUCER_FENCED
        await client.close()


async def test_unused_ids_are_forgotten_also_by_the_log() -> None:
    storage = MemoryStorage()
    week = 7 * 24 * 3_600_000
    async with Broker(storage=storage, topics={"t": 1}) as broker:
        client = await RawClient.connect(broker)
        idle, busy = RawProducer(client, "idle"), RawProducer(client, "busy")
        for producer in (idle, busy):
            await producer.init()
        await busy.send("t", b"a")
        transactions = broker.state.transactions
        assert transactions.expire(wall_ms() + week // 2) == 0
        assert transactions.expire(wall_ms() + week + 1) == 1
        assert transactions.get("idle") is None
        assert await idle.add("t", 0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        await client.close()
    async with Broker(storage=storage) as broker:
        assert [one.transactional_id for one in broker.state.transactions] == ["busy"]
        one = broker.state.transactions.get("busy")
        assert one is not None
        assert one.state is TransactionState.ONGOING


async def test_a_topic_that_is_deleted_in_a_transaction_is_left_out_of_its_end(
    broker: Broker, client: RawClient
) -> None:
    await broker.create_topic("gone", 1)
    producer = RawProducer(client)
    await producer.init()
    await producer.send("t", b"a")
    await producer.send("gone", b"b")
    await broker.delete_topic("gone")
    assert await producer.end(commit=True) == 0
    assert await read(client, "t") == [b"a"]
