"""FastStream on uvloop with its defaults: it commits before handlers have finished.

With `max_workers` there is no order.
"""

from __future__ import annotations

import logging

import uvloop
from faststream import FastStream  # type: ignore[import-not-found]  # of another environment
from faststream.kafka import KafkaBroker, KafkaMessage  # type: ignore[import-not-found]  # of another environment

from integration.bench.workers.meter import Meter, given_job


async def main() -> None:
    job = given_job()
    broker = KafkaBroker(job.bootstrap, logger=None)
    subscriber = broker.subscriber(
        job.topic, group_id=job.group, auto_offset_reset="earliest", max_workers=job.concurrency
    )
    handle = Meter(job).handler()
    if job.journal:

        @subscriber  # type: ignore[untyped-decorator]
        async def on_message(_body: bytes, message: KafkaMessage) -> None:
            await handle(message.raw_message)

    else:
        handle.__annotations__ = {"record": bytes}
        subscriber(handle)
    await FastStream(broker, logger=None).run(log_level=logging.ERROR)


if __name__ == "__main__":
    uvloop.run(main())
