"""The worker on uvloop: key order, at least once, defaults.

The session of every client is 10 seconds, that of aiokafka, after which a killed member is missed.
"""

from __future__ import annotations

import uvloop

from aiokwire import ConsumerRecord, Worker
from integration.bench.workers.meter import Meter, given_job


async def main() -> None:
    job = given_job()
    worker = Worker(job.bootstrap, group_id=job.group, concurrency=job.concurrency, session_timeout_ms=10_000)
    handle = Meter(job).handler()
    handle.__annotations__ = {"record": ConsumerRecord if job.journal else bytes}
    worker.add_handler(handle, job.topic)
    await worker.run()


if __name__ == "__main__":
    uvloop.run(main())
