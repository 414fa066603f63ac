"""Loops that start tasks eagerly, CPython 3.12 and later: clients, worker and broker.

`AIOKWIRE_EAGER_TASKS=1 make test` runs the whole suite so.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import anyio
import pytest
import uvloop

from aiokwire import Admin, Consumer, Context, Producer, Worker
from aiokwire.broker import Broker

if sys.version_info < (3, 12):
    pytest.skip("asyncio.eager_task_factory is new in 3.12", allow_module_level=True)


@pytest.fixture(autouse=True)
async def _eager_tasks() -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, uvloop.Loop) and (3, 13) <= sys.version_info < (3, 13, 3):
        pytest.skip("uvloop passes eager_start to the factory, and asyncio's accepts it since 3.13.3")
    loop.set_task_factory(asyncio.eager_task_factory)


async def test_records_sent_by_eager_tasks_are_acknowledged_and_read() -> None:
    async with (
        Broker(topics={"t": 2}) as broker,
        Producer(broker.bootstrap_servers) as producer,
        Consumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest") as reader,
    ):
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(producer.send, "t", b"%d" % number)
        submitted = [asyncio.ensure_future(producer.submit("t", b"%d" % n)) for n in range(50, 60)]  # noqa: TID251 - what users may do
        for task in submitted:
            await (await task)
        seen: set[int] = set()
        with anyio.fail_after(10):
            while len(seen) < 60:
                seen.update(int(record.value or b"") for record in await reader.getmany(timeout=1))
        await reader.commit()
        async with Admin(broker.bootstrap_servers) as admin:
            assert await admin.list_topics() is not None


async def test_a_cancelled_eager_send_leaves_the_producer_usable() -> None:
    async with Broker(topics={"t": 1}) as broker, Producer(broker.bootstrap_servers) as producer:
        with anyio.move_on_after(0):
            await producer.send("t", b"cancelled")
        assert (await producer.send("t", b"sent")).offset in (0, 1)


async def test_a_worker_handles_records_in_eager_tasks(tmp_path: Any) -> None:
    handled: list[int] = []
    all_handled = anyio.Event()
    async with Broker(topics={"t": 2}) as broker, Producer(broker.bootstrap_servers) as producer:
        worker = Worker(broker.bootstrap_servers, group_id="g", auto_offset_reset="earliest")

        @worker.handler("t")
        async def handle(number: int, context: Context) -> None:
            handled.append(number)
            if len(handled) == 20:
                all_handled.set()

        for number in range(20):
            await producer.send("t", b"%d" % number, partition=number % 2)
        async with worker:
            with anyio.fail_after(10):
                await all_handled.wait()
    assert sorted(handled) == list(range(20))
