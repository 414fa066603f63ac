"""aiokafka on uvloop with a gather by hand: at least once, in the order of each key.

Each turn reads many records, calls the handlers of different keys at the same time, at most
`concurrency` of them, waits for all, and commits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import uvloop
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped]  # no types

from integration.bench.workers.meter import Meter, given_job

_LEAST: Final = 500  # records of a turn
_PER_HANDLER: Final = 4  # records of a turn for each handler that may run, so that few wait for the slowest


async def main() -> None:
    job = given_job()
    consumer = AIOKafkaConsumer(
        job.topic,
        bootstrap_servers=job.bootstrap,
        group_id=job.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer:
        handle = Meter(job).handler()
        while True:
            found = await consumer.getmany(timeout_ms=1000, max_records=max(_LEAST, _PER_HANDLER * job.concurrency))
            records = [record for records in found.values() for record in records]
            if job.concurrency == 1:
                for record in records:
                    await handle(record)
            else:
                await _handle(records, handle, job.concurrency)
            if records:
                await consumer.commit()


async def _handle(records: list[Any], handle: Callable[[Any], Awaitable[None]], concurrency: int) -> None:
    by_key: dict[Any, list[Any]] = {}
    for record in records:
        by_key.setdefault(record.key, []).append(record)
    may_run = asyncio.Semaphore(concurrency)

    async def handle_all(same_key: list[Any]) -> None:
        for record in same_key:
            async with may_run:
                await handle(record)

    await asyncio.gather(*map(handle_all, by_key.values()))  # noqa: TID251 - what people write


if __name__ == "__main__":
    uvloop.run(main())
