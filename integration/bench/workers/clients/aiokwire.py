"""The worker on uvloop: key order, at least once, every other option its default."""

from __future__ import annotations

import uvloop

from aiokwire import ConsumerRecord, Worker
from integration.bench.workers.meter import Meter, given_job


async def main() -> None:
    job = given_job()
    worker = Worker(job.bootstrap, group_id=job.group, concurrency=job.concurrency)
    handle = Meter(job).handler()
    handle.__annotations__ = {"_record": ConsumerRecord if job.journal else bytes}
    worker.add_handler(handle, job.topic)
    await worker.run()


if __name__ == "__main__":
    uvloop.run(main())
