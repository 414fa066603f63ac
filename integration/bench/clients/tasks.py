"""Awaited sends from many tasks, the same for every asyncio client."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import anyio

from integration.bench.meter import Figures, Job, Meter

_SAMPLED = 16  # with many tasks, one send in 16 is timed, because the clock itself takes time


async def awaited_sends(job: Job, send: Callable[[bytes], Awaitable[object]]) -> Figures:
    """`job.tasks` tasks, each sending one record at a time, `job.count` in all."""
    meter = Meter()
    value = job.value()
    left = job.count
    step = 1 if job.tasks == 1 else _SAMPLED

    async def sender() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            if left % step:
                await send(value)
            else:
                began = time.perf_counter()
                await send(value)
                meter.latency(time.perf_counter() - began)

    meter.start()
    async with anyio.create_task_group() as group:
        for _ in range(job.tasks):
            group.start_soon(sender)
    return meter.stop(job.count)
