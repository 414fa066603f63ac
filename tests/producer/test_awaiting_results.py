"""Awaits that return at once: the result arrives, and nothing keeps it afterwards."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from aiokwire.consumer._iterate import Chunk, Feed
from aiokwire.producer._delivery import Delivery
from aiokwire.records import Record
from tests.producer.test_accumulator import batches_of, made


async def test_each_await_of_many_returns_its_own_delivery() -> None:
    accumulator, topic = made(count=1, batch_size=1 << 16)
    deliveries = [await accumulator.submit("t", b"x") for _ in range(100)]
    (batch,) = batches_of(topic)
    batch.complete(500, -1)
    assert [(await delivery).offset for delivery in deliveries] == list(range(500, 600))


async def test_a_result_that_was_dropped_is_not_kept_by_the_await() -> None:
    accumulator, topic = made(count=1)
    await accumulator.submit("t", b"x")
    (batch,) = batches_of(topic)
    gc.collect()
    assert not [found for found in gc.get_referrers(batch) if isinstance(found, StopIteration)]
    for stop in (found for found in gc.get_objects() if type(found) is StopIteration):
        assert not isinstance(stop.value, Delivery)


async def test_a_stop_iteration_that_was_kept_is_not_changed_by_later_awaits() -> None:
    accumulator, _ = made(count=1)

    def caught() -> StopIteration:
        with pytest.raises(StopIteration) as raised:
            next(accumulator.submit("t", b"x").__await__())
        return raised.value

    kept = [caught() for _ in range(3)]
    for _ in range(5):
        await accumulator.submit("t", b"x")
    assert all(isinstance(stop.value, Delivery) for stop in kept)
    assert len({id(stop.value) for stop in kept}) == len(kept)


async def test_a_traceback_of_one_stop_iteration_does_not_appear_on_the_next() -> None:
    accumulator, _ = made(count=1)
    depths = []
    for _ in range(3):
        try:
            next(accumulator.submit("t", b"x").__await__())
        except StopIteration as stop:
            depth, trace = 0, stop.__traceback__
            while trace is not None:
                depth, trace = depth + 1, trace.tb_next
            depths.append(depth)
            assert stop.__context__ is None  # noqa: PT017 - nothing may keep it
    assert len({*depths}) == 1


async def test_the_result_may_be_awaited_as_a_task_and_by_a_generator() -> None:
    accumulator, _ = made(count=1)
    task: asyncio.Task[Delivery] = asyncio.create_task(accumulator.submit("t", b"x"))  # noqa: TID251 - what users may do
    assert isinstance(await task, Delivery)

    def generator() -> Any:
        return (yield from accumulator.submit("t", b"x").__await__())

    steps = generator()
    with pytest.raises(StopIteration) as raised:
        next(steps)
    assert isinstance(raised.value.value, Delivery)


async def test_an_iteration_inside_a_handler_of_stop_iteration_keeps_both_results_apart() -> None:
    records = [Record("t", 0, offset, 0, None, b"%d" % offset, ()) for offset in range(40)]
    chunk = Chunk(None, None, 0, 40, 0, None)
    chunk.load(records)

    async def advance() -> Record:
        raise StopAsyncIteration

    feed = Feed(advance)
    feed.bind(asyncio.get_running_loop().time)
    feed.current = chunk
    accumulator, _ = made(count=1)
    seen = []
    async for record in feed:
        try:
            next(accumulator.submit("t", b"x").__await__())
        except StopIteration as stop:
            seen.append(record)
            assert isinstance(await accumulator.submit("t", b"x"), Delivery)
            assert isinstance(stop.value, Delivery)  # noqa: PT017 - while it is handled
    assert seen == records
