"""A producer in a wrong state, loop, thread or process: each call raises at once; none hangs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest
import pytest_asyncio

from aiokwire.broker import Broker
from aiokwire.errors import ClosedError
from aiokwire.producer import Producer

Bytes = Producer[bytes, bytes]
Call = Callable[[Bytes], Awaitable[object]]


async def send(producer: Bytes) -> object:
    return await producer.send("t", b"x")


async def submit(producer: Bytes) -> object:
    return await producer.submit("t", b"x")


async def submit_nowait(producer: Bytes) -> object:
    return producer.submit_nowait("t", b"x")


async def send_many(producer: Bytes) -> object:
    return await producer.send_many("t", [b"x"])


async def flush(producer: Bytes) -> None:
    await producer.flush()


async def purge(producer: Bytes) -> object:
    return producer.purge()


async def partitions_for(producer: Bytes) -> object:
    return await producer.partitions_for("t")


async def start(producer: Bytes) -> None:
    await producer.start()


async def transaction(producer: Bytes) -> object:
    async with producer.transaction() as tx:
        return tx


CALLS: list[Call] = [send, submit, submit_nowait, send_many, flush, purge, partitions_for, start, transaction]
OPTIONS: dict[str, Any] = {"transactional_id": "misused", "transaction_timeout_ms": 5000}


def named(call: Call) -> str:
    return call.__name__


@pytest_asyncio.fixture
async def producer() -> AsyncIterator[Bytes]:
    async with (
        Broker(topics={"t": 1}, auto_create_topics=False) as broker,
        Producer(broker.bootstrap_servers, **OPTIONS) as producer,
    ):
        yield producer


@pytest.mark.parametrize("call", [call for call in CALLS if call is not start], ids=named)
async def test_before_its_start_a_producer_accepts_nothing(call: Call) -> None:
    with pytest.raises(ClosedError, match="was not started"):
        await call(Producer("127.0.0.1:1", **OPTIONS))


@pytest.mark.parametrize("call", CALLS, ids=named)
async def test_after_its_end_a_producer_accepts_nothing(producer: Bytes, call: Call) -> None:
    await producer.close()
    with pytest.raises(ClosedError, match="was closed"):
        await call(producer)
    assert await producer.close() == []


async def error_of(call: Call, producer: Bytes) -> str:
    """The message that a call raises, within a second."""
    try:
        async with asyncio.timeout(1):
            await call(producer)
    except ClosedError as error:
        return str(error)
    except TimeoutError:
        return "it hung"
    return "nothing"


@pytest.mark.parametrize("call", [*CALLS, Producer.close], ids=named)
async def test_another_loop_in_another_thread_is_refused(producer: Bytes, call: Call) -> None:
    async with producer.transaction():
        producer.submit_nowait("t", b"x")
        message = await anyio.to_thread.run_sync(asyncio.run, error_of(call, producer))
    assert "another event loop" in message


def test_a_later_loop_is_rejected() -> None:
    """Tests of web frameworks do this: a loop per request, one producer for all."""
    producer: Bytes = Producer("127.0.0.1:1")

    async def begin() -> Broker:
        nonlocal producer
        broker = Broker(topics={"t": 1})
        await broker.start()
        producer = Producer(broker.bootstrap_servers)
        await producer.start()
        await producer.send("t", b"x")
        return broker

    async def end(broker: Broker) -> None:
        await producer.close()
        await broker.close()

    with asyncio.Runner() as first:
        broker = first.run(begin())
        for call in (send, submit, submit_nowait, send_many, flush, purge, partitions_for, start):
            assert "another event loop" in asyncio.run(error_of(call, producer))
        first.run(end(broker))


async def test_a_thread_without_a_loop_is_refused(producer: Bytes) -> None:
    async with producer.transaction():
        for call in (producer.purge, lambda: producer.submit_nowait("t", b"x")):
            with pytest.raises(ClosedError, match="another event loop"):
                await anyio.to_thread.run_sync(call)


async def in_a_fork(check: Callable[[], bool]) -> bool:
    """Return the result of a check in a forked child, by its exit status."""
    pid = os.fork()
    if pid == 0:
        status = 2
        try:
            status = 0 if check() else 1
        finally:
            os._exit(status)
    _, status = await anyio.to_thread.run_sync(os.waitpid, pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def run_in_child(call: Call, producer: Bytes) -> str:
    # The child inherits the parent's running loop; a worker starts without one.
    asyncio._set_running_loop(None)
    return asyncio.run(error_of(call, producer))


@pytest.mark.parametrize("call", CALLS, ids=named)
async def test_a_fork_is_refused(producer: Bytes, call: Call) -> None:
    async with producer.transaction():
        producer.submit_nowait("t", b"x")
        assert await in_a_fork(lambda: "fork" in run_in_child(call, producer))


async def test_closing_in_a_fork_leaves_the_records_to_the_parent(producer: Bytes) -> None:
    async with producer.transaction():
        delivery = producer.submit_nowait("t", b"x")

        def close() -> bool:
            asyncio._set_running_loop(None)
            return asyncio.run(producer.close()) == []

        assert await in_a_fork(close)
        assert (await delivery).offset == 0
