"""No client: `concurrency` tasks that call the handler in a loop, the limit of asyncio."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, NoReturn

import uvloop

from integration.bench.workers.meter import Meter, given_job


class Place(NamedTuple):
    """What a handler sees of a record."""

    partition: int = 0
    offset: int = 1


async def main() -> None:
    job = given_job()
    handle, place = Meter(job).handler(), Place()

    async def call() -> NoReturn:
        left = 100
        while True:
            await handle(place)
            left -= 1
            if not left:
                left = 100
                if not job.handler_ms:
                    await asyncio.sleep(0)  # noqa: TID251 - the fastest

    async with asyncio.TaskGroup() as tasks:
        for _ in range(job.concurrency):
            tasks.create_task(call())


if __name__ == "__main__":
    uvloop.run(main())
