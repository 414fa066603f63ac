"""Closing a producer during its start, twice, and in a cancelled task; starting it again."""

# ruff: noqa: TID251, PT012

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.broker import Broker
from aiokwire.errors import ClosedError, KafkaError
from aiokwire.producer import Producer, ProducerConfig
from aiokwire.producer.closing import CANCELLED_CLOSE_SECONDS
from aiokwire.protocol import ApiKey
from tests.producer.conftest import scripted_cluster
from tests.producer.test_submit import Gate

Bytes = Producer[bytes, bytes]
Quick = dict[str, Any]


@pytest.mark.parametrize("steps", [1, 3, 5, 10, 20, 50, 1000])
async def test_close_during_start_leaves_nothing_running(steps: int) -> None:
    """A running producer was left, which no later call could close."""
    async with Broker(topics={"t": 1}) as broker:
        producer = Bytes(broker.bootstrap_servers, transactional_id="x")
        starting = asyncio.create_task(producer.start())
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        assert await producer.close() == []
        await asyncio.wait([starting])
        assert starting.exception() is None or isinstance(starting.exception(), ClosedError)
        assert producer._client.closed or "new" in repr(producer._client)
        with pytest.raises(ClosedError, match="was closed"):
            await producer.start()


async def test_a_second_close_waits_for_the_first(quick: Quick) -> None:
    """It returned while the first one still delivered."""
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        gate = Gate(cluster)
        producer.submit_nowait("t", b"x")
        first = asyncio.create_task(producer.close())
        await anyio.lowlevel.checkpoint()
        second = asyncio.create_task(producer.close())
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert not second.done()
        gate.open()
        assert await second == []
        assert first.done()
        assert await first == []
        assert cluster.values() == [b"x"]


async def test_a_second_close_with_a_shorter_timeout_ends_the_first_by_then(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        Gate(cluster)
        producer.submit_nowait("t", b"x")
        first = asyncio.create_task(producer.close())
        await anyio.lowlevel.checkpoint()
        with anyio.fail_after(3):
            assert await producer.close(timeout=0.01) == []
        assert [record.value for record in await first] == [b"x"]


async def test_asyncio_timeout_around_the_block_ends_within_seconds(
    quick: Quick, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended after the delivery timeout: the cancellation was over when the block was left."""
    monkeypatch.setattr("aiokwire.producer.closing.CANCELLED_CLOSE_SECONDS", 0.1)
    async with scripted_cluster() as cluster:
        loop = asyncio.get_running_loop()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as limit, Producer(cluster.bootstrap_servers, **quick) as producer:
                await producer.send("t", b"before")
                Gate(cluster)
                limit.reschedule(loop.time() + 0.1)
                await producer.send("t", b"x")
        assert loop.time() - (limit.when() or 0) < 10
        gc.collect()
    assert CANCELLED_CLOSE_SECONDS <= 5
    assert "1 record(s) for t[0] were not delivered" in caplog.text


async def test_a_cancelled_task_still_delivers_what_it_can(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        with pytest.raises(TimeoutError):
            async with (
                asyncio.timeout(None) as limit,
                Producer(cluster.bootstrap_servers, **quick, linger_ms=5000) as producer,
            ):
                producer.submit_nowait("t", b"x")
                limit.reschedule(asyncio.get_running_loop().time() + 0.05)
                await anyio.sleep_forever()
        assert cluster.values() == [b"x"]


async def test_a_producer_whose_start_failed_can_be_started_again() -> None:
    async with scripted_cluster() as cluster:
        cluster.node.stop()
        options: Any = {"bootstrap_timeout_ms": 50} if hasattr(ProducerConfig, "bootstrap_timeout_ms") else {}
        producer = Bytes(cluster.bootstrap_servers, **options)
        with pytest.raises(KafkaError):
            await producer.start()
        with pytest.raises(ClosedError, match="was not started"):
            producer.submit_nowait("t", b"x")
        await cluster.node.start()
        await producer.start()
        assert (await producer.send("t", b"x")).offset == 0
        await producer.close()


async def test_a_transactional_producer_whose_start_failed_can_be_started_again(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=True)
        cluster.coordinator.codes[ApiKey.INIT_PRODUCER_ID] = [53]
        producer = Bytes(cluster.bootstrap_servers, **quick, transactional_id="x")
        with pytest.raises(KafkaError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
            await producer.start()
        await producer.start()
        async with producer.transaction():
            await producer.send("t", b"x")
        await producer.close()
        assert cluster.values() == [b"x"]


async def test_closing_a_producer_that_was_never_started_ends_it(caplog: pytest.LogCaptureFixture) -> None:
    producer = Bytes("127.0.0.1:1")
    with caplog.at_level(logging.INFO):
        assert await producer.close() == []
        assert await producer.close() == []
    with pytest.raises(ClosedError, match="was closed"):
        await producer.start()
