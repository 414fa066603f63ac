"""`submit` in every way that Python allows: awaited, dropped, in its own task, gathered."""

# ruff: noqa: TID251

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from aiokwire.errors import BufferFullError, DeliveryFailed
from aiokwire.producer import Delivery, Producer, Undelivered
from aiokwire.producer.buffer_pool import LINE_LIMIT
from aiokwire.protocol.messages import produce
from tests.producer.conftest import ScriptedCluster, scripted_cluster
from tests.producer.test_back_pressure import SMALL, value_of

Bytes = Producer[bytes, bytes]
Quick = dict[str, Any]


class Gate:
    """Delays the requests of a cluster until it opens."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.held = 0  # requests so far
        self._open = anyio.Event()
        cluster.node.on_request = self._wait

    async def _wait(self, request: produce.ProduceRequest) -> bool | None:
        self.held += 1
        await self._open.wait()
        return None

    def open(self) -> None:
        self._open.set()


def submit_unawaited(producer: Bytes, numbers: range) -> None:
    for number in numbers:
        producer.submit("t", value_of(number))  # type: ignore[unused-coroutine]  # what these tests are about


@pytest.mark.parametrize("end", ["flush", "close", "leaving the block"])
async def test_submit_without_await_loses_nothing_when_the_buffer_is_full(end: str, quick: Quick) -> None:
    """3,000 submitted, 1,024 arrived: a record began to wait only when its `submit` was awaited."""
    async with scripted_cluster() as cluster:
        async with Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
            await producer.partitions_for("t")
            submit_unawaited(producer, range(600))
            gc.collect()
            if end == "flush":
                await producer.flush()
                assert producer.buffered == 0
            elif end == "close":
                assert await producer.close() == []
        assert cluster.values() == [value_of(number) for number in range(600)]


async def test_a_commit_includes_records_that_waited_for_room(quick: Quick) -> None:
    async with scripted_cluster() as cluster:
        cluster.allow_transactions(transaction_v2=True)
        options = {**quick, **SMALL, "transactional_id": "x"}
        async with Producer(cluster.bootstrap_servers, **options) as producer, producer.transaction():
            submit_unawaited(producer, range(600))
        assert cluster.values() == [value_of(number) for number in range(600)]


async def test_submit_without_await_is_refused_above_the_limit_of_the_line(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        gate = Gate(cluster)
        accepted = 0
        with pytest.raises(BufferFullError, match=r"use `await producer\.submit"):  # noqa: PT012 - any of them may raise
            for _ in range(2 * LINE_LIMIT):
                producer.submit("t", b"x" * 100)  # type: ignore[unused-coroutine]
                accepted += 1
        assert producer.waiting <= LINE_LIMIT
        gate.open()
        await producer.flush()
        assert len(cluster.values()) == accepted
        await producer.send("t", b"after")


async def test_tasks_that_await_are_not_bounded_by_the_line(quick: Quick) -> None:
    """They are bounded by the program itself: each has one record."""
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        gate = Gate(cluster)
        async with anyio.create_task_group() as group:
            for number in range(400):

                async def one(number: int = number) -> None:
                    await (await producer.submit("t", value_of(number)))

                group.start_soon(one)
            with anyio.fail_after(5):
                while producer.waiting < 250:
                    await anyio.lowlevel.checkpoint()
            gate.open()
        assert cluster.values() == [value_of(number) for number in range(400)]


async def test_submit_in_a_task_keeps_the_order_of_the_calls(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        tasks: list[asyncio.Task[Delivery]] = []
        for number in range(200):
            call: Coroutine[Any, Any, Delivery] = producer.submit("t", value_of(number))
            assert asyncio.iscoroutine(call)
            tasks.append(asyncio.create_task(call))
        for delivery in await asyncio.gather(*tasks):
            await delivery
        (sent,) = await asyncio.gather(asyncio.create_task(producer.send("t", b"last")))
        assert sent.offset == 200
        assert cluster.values() == [*(value_of(number) for number in range(200)), b"last"]


async def test_submit_can_be_gathered_and_waited_for(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        deliveries = await asyncio.gather(*(producer.submit("t", value_of(number)) for number in range(10)))
        delivery = await asyncio.wait_for(producer.submit("t", b"last"), 5)
        assert [(await each).offset for each in (*deliveries, delivery)] == list(range(11))


async def test_a_cancelled_wait_gives_up_its_place_and_a_dropped_one_does_not(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        gate = Gate(cluster)
        submit_unawaited(producer, range(150))
        waiting = producer.waiting
        assert waiting
        tasks = [asyncio.create_task(producer.submit("t", b"cancelled")) for _ in range(3)]
        await anyio.lowlevel.checkpoint()
        tasks.append(asyncio.create_task(producer.submit("t", b"cancelled before its first step")))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        assert producer.waiting == waiting
        gate.open()
        await producer.flush()
        assert cluster.values() == [value_of(number) for number in range(150)]


async def test_a_program_that_only_submits_lets_the_loop_turn(quick: Quick) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick) as producer:
        await producer.partitions_for("t")
        async with anyio.create_task_group() as group:
            group.start_soon(count)
            for _ in range(40):
                await producer.submit("t", b"x" * 100_000)
            group.cancel_scope.cancel()
        assert turns >= 5, turns


# --- records that are never accepted ----------------------------------------------------------------------------------


async def test_close_returns_the_records_that_waited_for_room_without_an_await(quick: Quick) -> None:
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **quick, **SMALL) as producer:
        await producer.partitions_for("t")
        Gate(cluster)
        submit_unawaited(producer, range(150))
        left = await producer.close(timeout=0.05)
        assert sorted(record.value or b"" for record in left) == [value_of(number) for number in range(150)]
        assert isinstance(left[-1], Undelivered)


async def test_waiting_for_room_and_delivering_together_end_with_the_delivery_timeout(quick: Quick) -> None:
    """A record waited for room almost to its deadline, then had the full time again: 7.5 s of 4."""
    options = {**quick, **SMALL, "delivery_timeout_ms": 2000, "linger_ms": 0}
    async with scripted_cluster() as cluster, Producer(cluster.bootstrap_servers, **options) as producer:
        await producer.send("t", b"first")  # the first batch of a sequence is sent alone
        gate = Gate(cluster)
        loop = asyncio.get_running_loop()
        held = []
        while producer.buffered + 1200 < SMALL["buffer_memory"]:
            held.append(producer.submit_nowait("t", value_of(0)))
        began = loop.time()
        waits = asyncio.create_task(producer.submit("t", b"x" * 3900))
        with anyio.move_on_after(1.4):
            await asyncio.shield(waits)
        assert not waits.done()
        gate.open()
        delivery = await waits
        Gate(cluster)
        with pytest.raises(DeliveryFailed, match="delivery_timeout_ms=2000"):
            await delivery
        assert loop.time() - began < 3
        await producer.close(timeout=0)
        for each in held:
            each.exception()
